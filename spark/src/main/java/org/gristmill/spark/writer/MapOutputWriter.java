package org.gristmill.spark.writer;

import java.io.IOException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Emission;
import org.gristmill.spark.node.ExecutorNode;
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
public record MapOutputWriter<K, V, C>(ExecutorNode node, ShuffleDependency<K, V, C> dependency, TaskContext context,
    WriteMetrics metrics, PartitionBuffers buffers, RowChecksums checksums) {
  /** Writes all records and commits. Returns the content of the map status. */
  public Message.Committed write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    Emission emission = node.start(dependency.shuffleId(), context.partitionId(), context.taskAttemptId());
    metrics.waited(System.nanoTime() - start);
    long consumed = 0;
    if (!emission.nothing()) {
      consumed = writeRecords(combined(records), emission);
    }
    buffers.finish();
    metrics.peakMemory(buffers.peakBytes());

    long asked = System.nanoTime();
    Message.Committed committed = node.commit(dependency.shuffleId(), context.taskAttemptId(), consumed,
        (asked - start) / 1_000_000, buffers.lengths().clone(), buffers.digest(checksums.value()));
    metrics.waited(System.nanoTime() - asked);
    if (!committed.accepted()) {
      throw new TaskKilledException("an executor that stored output of this attempt was lost, or the attempt has not written what an"
          + " earlier attempt of its map wrote, which others have read; the driver's log says which");
    }
    return committed;
  }

  private long writeRecords(Iterator<? extends Product2<?, ?>> records, Emission emission) throws IOException {
    long consumed = 0;
    int partitions = dependency.partitioner().numPartitions();
    while (records.hasNext()) {
      Product2<?, ?> record = records.next();
      Object key = record._1();
      int partition = dependency.partitioner().getPartition(key);
      if (partition < 0 || partition >= partitions) {
        throw new IndexOutOfBoundsException(dependency.partitioner().getClass().getName() + " puts a key into partition " + partition
            + " of shuffle " + dependency.shuffleId() + ", which has the partitions 0 to " + (partitions - 1));
      }
      checksums.add(partition, key, record._2());
      buffers.write(partition, key, record._2(), emission.includes(partition));
      consumed++;
    }
    return consumed;
  }

  private Iterator<? extends Product2<?, ?>> combined(Iterator<Product2<K, V>> records) {
    return dependency.mapSideCombine() ? dependency.aggregator().get().combineValuesByKey(records, context) : records;
  }
}
