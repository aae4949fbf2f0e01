package org.gristmill.spark.reader;

import org.gristmill.core.read.FetchMetrics;

/** The numbers that Spark shows for a reduce task. */
public interface ReadMetrics extends FetchMetrics {
  void recordRead();

  /** All records were read. */
  void finished();

  void peakMemory(long bytes);

  void spilled(long memoryBytes, long fileBytes);
}
