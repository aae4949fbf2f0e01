package org.gristmill.spark.reader;

import org.gristmill.core.plan.Executor;
import org.gristmill.core.read.PartitionSource;

/** Gives access to partitions on other executors. */
public interface PartitionSources {
  PartitionSource remote(Executor home, int shuffle, int partition);
}
