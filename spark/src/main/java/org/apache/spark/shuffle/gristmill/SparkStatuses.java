package org.apache.spark.shuffle.gristmill;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.shuffle.MetadataFetchFailedException;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.gristmill.spark.reader.MapStatuses;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/** The map statuses of maps [startMap, endMap) for partitions [start, end), from Spark's map output tracker. */
record SparkStatuses(MapOutputTracker tracker, int shuffle, int startMap, int endMap, int start, int end) implements MapStatuses {
  /** Executors forget their map statuses when a task brings a higher epoch. */
  @Override
  public long epoch() {
    synchronized (tracker.epochLock()) {
      return tracker.epoch();
    }
  }

  @Override
  public Map<Integer, Map<Integer, Long>> winners() {
    Map<Integer, Map<Integer, Long>> winners = new TreeMap<>();
    Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> statuses = tracker.getMapSizesByExecutorId(shuffle, startMap, endMap,
        start, end);
    while (statuses.hasNext()) {
      Iterator<Tuple3<BlockId, Object, Object>> blocks = statuses.next()._2().iterator();
      while (blocks.hasNext()) {
        Tuple3<BlockId, Object, Object> block = blocks.next();
        ShuffleBlockId id = (ShuffleBlockId) block._1();
        winners.computeIfAbsent(id.reduceId(), k -> new LinkedHashMap<>()).put((Integer) block._3(), id.mapId());
      }
    }
    return winners;
  }

  @Override
  public RuntimeException fetchFailure(int partition, String reason) {
    throw SparkStatuses.<RuntimeException>unchecked(new MetadataFetchFailedException(shuffle, partition,
        "Shuffle " + shuffle + " partition " + partition + ": " + reason));
  }

  /** Spark's fetch failure is a checked exception, which Scala code throws without a declaration. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> E unchecked(Exception e) throws E {
    throw (E) e;
  }
}
