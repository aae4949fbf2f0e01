package org.gristmill.spark.reader;

import java.util.Map;

/** Spark's map statuses, as the task that reads a range of partitions has them. */
public interface MapStatuses {
  /** The epoch of Spark's map output tracker; what is looked up afterwards is at least as new. */
  long epoch();

  /** For each partition that has data, the winning attempt of each map with data there, by map index. */
  Map<Integer, Map<Integer, Long>> winners();

  /** Throws the exception that makes Spark run the maps again that are not registered. */
  RuntimeException fetchFailure(int partition, String reason);
}
