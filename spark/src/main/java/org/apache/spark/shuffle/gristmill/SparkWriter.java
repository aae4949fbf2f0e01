package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.gristmill.core.format.Message;
import org.gristmill.spark.writer.MapOutputWriter;
import org.gristmill.spark.writer.WriteMetrics;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/** A {@link MapOutputWriter}, as Spark sees it. */
final class SparkWriter<K, V> extends ShuffleWriter<K, V> {
  private final MapOutputWriter<K, V, ?> writer;
  private final StatusLocations locations;
  private final SparkVersion version;
  private MapStatus status;

  SparkWriter(MapOutputWriter<K, V, ?> writer, StatusLocations locations, SparkVersion version) {
    this.writer = writer;
    this.locations = locations;
    this.version = version;
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    Message.Committed committed = writer.write(records);
    status = version.status(locations.of(committed.executor(), committed.host(), committed.port()), committed.sizes(),
        writer.context().taskAttemptId(), committed.rows());
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (!success) {
      writer.buffers().release();
      return Option.empty();
    }
    return Option.apply(status);
  }

  @Override
  public long[] getPartitionLengths() {
    return writer.buffers().lengths();
  }

  /** The numbers of a map task, where Spark keeps them. */
  record Metrics(ShuffleWriteMetricsReporter reporter, TaskContext context) implements WriteMetrics {
    @Override
    public void bytesWritten(long bytes) {
      reporter.incBytesWritten(bytes);
    }

    @Override
    public void recordsWritten(long records) {
      reporter.incRecordsWritten(records);
    }

    @Override
    public void waited(long nanos) {
      reporter.incWriteTime(nanos);
    }

    @Override
    public void peakMemory(long bytes) {
      context.taskMetrics().incPeakExecutionMemory(bytes);
    }
  }
}
