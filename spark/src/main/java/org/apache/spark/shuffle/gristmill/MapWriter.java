package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.storage.BlockManagerId;
import org.gristmill.core.Emission;
import org.gristmill.core.Message;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * The map side of one task attempt.
 * <ol>
 * <li>Ask the driver what to emit: everything, or what an earlier attempt of this map has lost.
 * <li>Combine, if the shuffle combines on the map side; partition; serialise into segments for the page pool.
 * <li>Tell the driver that all is written; its answer is what the map status says.
 * </ol>
 * Segments of an attempt that fails on the way are in the pool or at their homes already; no reader will take them.
 */
final class MapWriter<K, V, C> extends ShuffleWriter<K, V> {
  private final ExecutorNode node;
  private final StatusLocations locations;
  private final ShuffleDependency<K, V, C> dependency;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final PartitionBuffers buffers;
  private MapStatus status;

  MapWriter(ExecutorNode node, StatusLocations locations, ShuffleDependency<K, V, C> dependency, TaskContext context,
      ShuffleWriteMetricsReporter metrics, PartitionBuffers buffers) {
    this.node = node;
    this.locations = locations;
    this.dependency = dependency;
    this.context = context;
    this.metrics = metrics;
    this.buffers = buffers;
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    Emission emission = node.start(dependency.shuffleId(), context.partitionId(), context.taskAttemptId());
    SparkVersion version = new SparkVersion(dependency);
    long consumed = 0;
    if (!emission.nothing()) {
      consumed = writeRecords(combined(records), emission, version);
    }
    buffers.finish();
    context.taskMetrics().incPeakExecutionMemory(buffers.peakBytes());

    long asked = System.nanoTime();
    Message.Shaped shaped = node.commit(dependency.shuffleId(), context.taskAttemptId(), consumed,
        (asked - start) / 1_000_000, buffers.lengths().clone(), buffers.digest(version.rows()));
    metrics.incWriteTime(System.nanoTime() - asked);
    if (!shaped.accepted()) {
      throw new TaskKilledException("a home of partitions that this attempt wrote to was lost meanwhile, or it has not written what an"
          + " earlier attempt wrote, of which others have read; the driver's log says which");
    }
    BlockManagerId location = locations.of(shaped.executor(), shaped.host(), shaped.port());
    status = version.status(location, shaped.sizes(), context.taskAttemptId(), shaped.rows());
  }

  private long writeRecords(Iterator<? extends Product2<?, ?>> records, Emission emission, SparkVersion version)
      throws IOException {
    long consumed = 0;
    while (records.hasNext()) {
      Product2<?, ?> record = records.next();
      Object key = record._1();
      int partition = dependency.partitioner().getPartition(key);
      version.row(partition, key, record._2());
      buffers.write(partition, key, record._2(), emission.includes(partition));
      consumed++;
    }
    return consumed;
  }

  private Iterator<? extends Product2<?, ?>> combined(Iterator<Product2<K, V>> records) {
    return dependency.mapSideCombine() ? dependency.aggregator().get().combineValuesByKey(records, context) : records;
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (!success) {
      buffers.release();
      return Option.empty();
    }
    return Option.apply(status);
  }

  @Override
  public long[] getPartitionLengths() {
    return buffers.lengths();
  }
}
