package org.apache.spark.shuffle.gristmill;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Adds up the shuffle metrics of all tasks, as Spark's UI does. */
final class TaskMetricsListener extends SparkListener {
  final AtomicLong localBytes = new AtomicLong();
  final AtomicLong remoteBytes = new AtomicLong();
  final AtomicLong writtenBytes = new AtomicLong();
  final AtomicLong recordsRead = new AtomicLong();

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    TaskMetrics m = end.taskMetrics();
    if (m != null) {
      localBytes.addAndGet(m.shuffleReadMetrics().localBytesRead());
      remoteBytes.addAndGet(m.shuffleReadMetrics().remoteBytesRead());
      writtenBytes.addAndGet(m.shuffleWriteMetrics().bytesWritten());
      recordsRead.addAndGet(m.shuffleReadMetrics().recordsRead());
    }
  }
}
