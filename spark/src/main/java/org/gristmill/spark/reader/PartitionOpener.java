package org.gristmill.spark.reader;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiFunction;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.gristmill.core.format.Message;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Location;
import org.gristmill.core.read.PartitionSource;
import org.gristmill.core.read.SelectedSegments;
import org.gristmill.core.read.WinningSegments;
import org.gristmill.spark.node.ExecutorNode;

/**
 * Finds, for one reduce task, the segments of its partitions: all of every winner's, or a fetch failure.
 * <ol>
 * <li>The winners, and which of them have data in a partition, come from Spark's own map statuses.
 * <li>The driver says where the partitions live, and which attempts wrote the other partitions of a partial attempt.
 * <li>The home says what it holds. If a winner is incomplete: once, all executors deliver what they still have, and we
 *     look again; then, if homes have changed meanwhile, we look there.
 * <li>If it still is, or if the home cannot be read: the driver is told. Where nothing is lost, because a replica takes
 *     over or senders send again, we look there; else the map outputs in question are no longer registered, the task
 *     fails with a fetch failure, and Spark runs those maps again.
 * </ol>
 */
public final class PartitionOpener {
  private static final String REPLACED = "a map has run again and has written other records, so its map status is out of date";

  private final ExecutorNode node;
  private final BiFunction<Executor, Integer, PartitionSource> remote;
  private final MapStatuses statuses;
  private final ReadMetrics metrics;
  private final Message.Locate asked;
  private final boolean allMaps;
  private final SelectedSegments.Limits limits;
  private final Map<Integer, Map<Integer, Long>> winners;
  private Location location;
  private boolean flushed;

  /** @param remote gives access to a partition on another executor */
  public PartitionOpener(ExecutorNode node, BiFunction<Executor, Integer, PartitionSource> remote, MapStatuses statuses, ReadMetrics metrics,
      TaskContext context,
      int shuffle, boolean allMaps, int start, int end, SelectedSegments.Limits limits) {
    this.node = node;
    this.remote = remote;
    this.statuses = statuses;
    this.metrics = metrics;
    this.allMaps = allMaps;
    this.limits = limits;
    asked = new Message.Locate(shuffle, start, end, context.taskAttemptId(), context.stageId(), statuses.epoch()); // first: the winners are at least as new
    winners = statuses.winners();
    location = locate(); // also if there is nothing to read: the driver must know the tasks that found nothing
    TaskCompletionListener atEnd = ended -> {
      if (!ended.isFailed() && !ended.isInterrupted() && !node.readingEnds(shuffle, asked.attempt())) {
        throw statuses.fetchFailure(start, REPLACED);
      }
    };
    context.addTaskCompletionListener(atEnd);
  }

  private Location locate() {
    Location found = node.locate(asked);
    if (found == null) {
      throw statuses.fetchFailure(asked.start(), REPLACED);
    }
    return found;
  }

  /** The partitions that have data for this task, in order. */
  Set<Integer> partitions() {
    return winners.keySet();
  }

  SelectedSegments open(int partition) {
    while (true) {
      Executor home = location.homes().get(partition - asked.start());
      PartitionSource source = home.id().equals(node.executorId())
          ? new PartitionSource.Local(node.store(), asked.shuffle(), partition)
          : remote.apply(home, partition);
      try {
        PartitionIndex index = source.index();
        WinningSegments.Selection selection = WinningSegments.select(index, writers(partition));
        if (selection.complete()) {
          long chosen = bytes(selection.segments());
          node.opened(source.local(), chosen, allMaps ? bytes(index.entries()) - chosen : 0);
          return new SelectedSegments(source, selection.segments(), limits, metrics);
        }
        if (!flush() && !relocated()) {
          Map<Integer, Long> incomplete = new TreeMap<>(winners.get(partition));
          incomplete.keySet().retainAll(selection.incomplete());
          throw failure(partition, incomplete, "", "executor " + home.id() + " is its home now and does not have what "
              + incomplete.size() + " maps wrote, lost with another executor or on the way; these maps run again");
        }
      } catch (IOException e) {
        String reason = "executor " + home.id() + " cannot be read: " + e.getMessage();
        if (!relocated() && !(node.missing(asked.shuffle(), partition, winners.get(partition), home.id(), reason) && relocated())) {
          throw statuses.fetchFailure(partition, reason);
        }
      }
    }
  }

  private static long bytes(List<PartitionIndex.Entry> segments) {
    return segments.stream().mapToLong(PartitionIndex.Entry::bytes).sum();
  }

  /** Reading a partition that was opened has failed: tells the driver, and throws the fetch failure. */
  RuntimeException failed(int partition, IOException error) {
    String home = location.homes().get(partition - asked.start()).id();
    if (error instanceof SelectedSegments.CorruptSegmentException corrupt) {
      String reason = "executor " + home + ": " + corrupt.getMessage();
      node.corrupt(asked.shuffle(), partition, corrupt.mapIndex(), winners.get(partition), home, reason);
      return statuses.fetchFailure(partition, reason);
    }
    return failure(partition, winners.get(partition), home, "executor " + home + " cannot be read: " + error.getMessage());
  }

  /**
   * A partition has given another number of records than its maps wrote: their output is made again, wherever the fault
   * is.
   */
  RuntimeException miscounted(int partition, long came, long written) {
    return failure(partition, winners.get(partition), "", came + " of " + written + " records came from executor "
        + location.homes().get(partition - asked.start()).id() + "; the maps that wrote them run again. If this comes again, set"
        + " spark.shuffle.manager=sort, and please report it");
  }

  private RuntimeException failure(int partition, Map<Integer, Long> incomplete, String home, String reason) {
    node.missing(asked.shuffle(), partition, incomplete, home, reason);
    return statuses.fetchFailure(partition, reason);
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
      node.flush(asked.shuffle());
    } catch (Exception e) { // Spark's RPC throws checked exceptions too, without saying so
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      // Segments of an executor that does not answer in time will be missing, and made again.
      LOG.warn("Pages of shuffle {} could not all be delivered", asked.shuffle(), e);
    }
    metrics.waited((System.nanoTime() - begin) / 1_000_000);
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
