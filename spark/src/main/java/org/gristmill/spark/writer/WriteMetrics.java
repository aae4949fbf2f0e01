package org.gristmill.spark.writer;

/** The numbers that Spark shows for a map task. */
public interface WriteMetrics {
  void bytesWritten(long bytes);

  void recordsWritten(long records);

  void waited(long nanos);

  void peakMemory(long bytes);
}
