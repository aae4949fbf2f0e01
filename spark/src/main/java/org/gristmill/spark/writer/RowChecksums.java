package org.gristmill.spark.writer;

/** Spark's own checksums of the rows of one map attempt, where it makes any. */
public interface RowChecksums {
  /** Adds a record, also one that is not emitted. */
  void add(int partition, Object key, Object value);

  /** The checksum of all rows, as map statuses report it; 0 if there is none. */
  long value();
}
