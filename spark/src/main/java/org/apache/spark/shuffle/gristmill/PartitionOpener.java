package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.TaskContext;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.shuffle.MetadataFetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.util.TaskCompletionListener;
import org.gristmill.core.Coordinator;
import org.gristmill.core.Emission;
import org.gristmill.core.Message;
import org.gristmill.core.PartitionIndex;
import org.gristmill.core.Winners;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Finds, for one reduce task, the segments of its partitions: all of every winner's, or a fetch failure.
 * <ol>
 * <li>The winners, and which of them have data in a partition, come from Spark's own map statuses.
 * <li>The driver says where the partitions live, and who wrote what a partial attempt did not.
 * <li>The home says what it holds. If a winner is incomplete: once, all executors deliver what they still have, and we look
 *     again; then, if homes have changed meanwhile, we look there.
 * <li>If it still is, or if the home cannot be read: the driver is told. Where nothing is lost, because a replica takes over or
 *     senders send again, we look there; else the map outputs in question are no longer registered, the task fails with a fetch
 *     failure, and Spark runs those maps again.
 * </ol>
 */
final class PartitionOpener {
  private static final Logger LOG = LoggerFactory.getLogger(GristmillShuffleManager.class);

  private static final String REPLACED = "a map has run again and written something else, what this task knows of it no longer stands";

  private final ExecutorNode node;
  private final BlockTransferService service;
  private final ShuffleReadMetricsReporter metrics;
  private final int shuffle;
  private final int start;
  private final int end;
  private final long attempt;
  private final int stage;
  private final long statusesFrom;
  private final boolean allMaps;
  private final int readBytes;
  private final long aheadBytes;
  private final Map<Integer, Map<Integer, Long>> winners = new TreeMap<>();
  private Coordinator.Location location;
  private boolean flushed;

  PartitionOpener(ExecutorNode node, BlockTransferService service, MapOutputTracker tracker,
      ShuffleReadMetricsReporter metrics, TaskContext context, int shuffle, int startMap, int endMap, int start, int end, int readBytes,
      long aheadBytes) {
    this.node = node;
    this.service = service;
    this.metrics = metrics;
    this.shuffle = shuffle;
    this.start = start;
    this.end = end;
    attempt = context.taskAttemptId();
    stage = context.stageId();
    allMaps = startMap == 0 && endMap == Integer.MAX_VALUE;
    this.readBytes = readBytes;
    this.aheadBytes = aheadBytes;
    statusesFrom = epoch(tracker); // first: what comes then is at least as new
    Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> statuses =
        tracker.getMapSizesByExecutorId(shuffle, startMap, endMap, start, end);
    while (statuses.hasNext()) {
      Iterator<Tuple3<BlockId, Object, Object>> blocks = statuses.next()._2().iterator();
      while (blocks.hasNext()) {
        Tuple3<BlockId, Object, Object> block = blocks.next();
        ShuffleBlockId id = (ShuffleBlockId) block._1();
        winners.computeIfAbsent(id.reduceId(), k -> new LinkedHashMap<>()).put((Integer) block._3(), id.mapId());
      }
    }
    location = locate(); // also where there is nothing to read: it is to be known who has found nothing
    context.addTaskCompletionListener(new TaskCompletionListener() {
      @Override
      public void onTaskCompletion(TaskContext ended) {
        if (!ended.isFailed() && !ended.isInterrupted() && !node.readingEnds(shuffle, attempt)) {
          throw fetchFailure(start, REPLACED);
        }
      }
    });
  }

  /** Executors forget their map statuses when a task brings a higher epoch. */
  private static long epoch(MapOutputTracker tracker) {
    synchronized (tracker.epochLock()) {
      return tracker.epoch();
    }
  }

  private Coordinator.Location locate() {
    Coordinator.Location found = node.locate(new Message.Locate(shuffle, start, end, attempt, stage, statusesFrom));
    if (found == null) {
      throw fetchFailure(start, REPLACED);
    }
    return found;
  }

  /** The partitions that have data for this task, in order. */
  Set<Integer> partitions() {
    return winners.keySet();
  }

  SelectedSegments open(int partition) {
    while (true) {
      Coordinator.Executor home = location.homes().get(partition - start);
      PartitionSource source = PartitionSource.of(node, service, home, shuffle, partition);
      try {
        PartitionIndex index = source.index();
        Winners.Selection selection = Winners.select(index, writers(partition));
        if (selection.complete()) {
          long chosen = bytes(selection.segments());
          node.opened(source.local(), chosen, allMaps ? bytes(index.entries()) - chosen : 0);
          return new SelectedSegments(source, selection.segments(), readBytes, aheadBytes, metrics);
        }
        if (!flush() && !relocated()) {
          Map<Integer, Long> incomplete = new TreeMap<>(winners.get(partition));
          incomplete.keySet().retainAll(selection.incomplete());
          throw failure(partition, incomplete, "", "executor " + home.id() + " does not have all segments of "
              + incomplete.size() + " maps");
        }
      } catch (IOException e) {
        String reason = "executor " + home.id() + " cannot be read: " + e.getMessage();
        if (!relocated() && !(node.missing(shuffle, partition, winners.get(partition), home.id(), reason) && relocated())) {
          throw fetchFailure(partition, reason);
        }
      }
    }
  }

  private static long bytes(List<PartitionIndex.Entry> segments) {
    return segments.stream().mapToLong(PartitionIndex.Entry::bytes).sum();
  }

  /** Reading a partition that was opened has failed: tells the driver, and throws the fetch failure. */
  RuntimeException failed(int partition, IOException error) {
    String home = location.homes().get(partition - start).id();
    if (error instanceof SelectedSegments.CorruptSegmentException corrupt) {
      int map = corrupt.mapIndex();
      return failure(partition, Map.of(map, winners.get(partition).get(map)), "", "executor " + home + ": "
          + corrupt.getMessage());
    }
    return failure(partition, winners.get(partition), home, "executor " + home + " cannot be read: " + error.getMessage());
  }

  private RuntimeException failure(int partition, Map<Integer, Long> incomplete, String home, String reason) {
    node.missing(shuffle, partition, incomplete, home, reason);
    return fetchFailure(partition, reason);
  }

  private RuntimeException fetchFailure(int partition, String reason) {
    throw PartitionOpener.<RuntimeException>unchecked(new MetadataFetchFailedException(shuffle, partition,
        "Shuffle " + shuffle + " partition " + partition + ": " + reason));
  }

  /** Spark's fetch failure is a checked exception that Scala code throws without saying so. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> E unchecked(Exception e) throws E {
    throw (E) e;
  }

  /** Map index to the attempt whose segments stand in this partition for the winner's. */
  private Map<Integer, Long> writers(int partition) {
    Map<Integer, Long> writers = new HashMap<>();
    winners.get(partition).forEach((map, winner) -> writers.put(map, location.lineage().writer(winner, partition)));
    writers.values().removeIf(writer -> writer == Emission.NOBODY);
    return writers;
  }

  /** True if there was a flush to be made, and it was made. */
  private boolean flush() {
    if (flushed) {
      return false;
    }
    long begin = System.nanoTime();
    try {
      node.flush(shuffle);
    } catch (Exception e) { // Spark's RPC throws checked exceptions too, without saying so
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      // What an executor holds that does not answer in time will be missing, and made again.
      LOG.warn("Pages of shuffle {} could not all be delivered", shuffle, e);
    }
    metrics.incFetchWaitTime((System.nanoTime() - begin) / 1_000_000);
    flushed = true;
    return true;
  }

  /** True if homes have changed since we asked; then there may be something to flush again. */
  private boolean relocated() {
    int before = location.epoch();
    location = locate();
    boolean changed = location.epoch() != before;
    flushed &= !changed;
    return changed;
  }
}
