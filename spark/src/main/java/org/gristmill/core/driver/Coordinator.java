package org.gristmill.core.driver;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Recovery;

/**
 * The driver's side: which executors can be homes, and a {@link ShuffleLedger} for each shuffle. Thread safe. What it
 * decides goes out through {@link MapOutputs} and {@link Announcer}.
 */
public final class Coordinator {
  /**
   * Location, sizes, and Spark's checksum of rows for a map status; {@code accepted} is false if the attempt must not
   * become a winner, {@code complete} true if every map of the shuffle has committed.
   */
  public record CommitResult(boolean accepted, boolean complete, Executor location, long[] sizes, long rows) {}

  /** A shuffle before it runs. {@code firstEpoch} is above all epochs of its plans so far. */
  private record Registered(int maps, int partitions, Dependency dependency, int firstEpoch) {}

  private final MapOutputs outputs;
  private final Announcer announcer;
  private final double planShare;
  private final Recovery recovery;
  private final RedoProof redo;
  private final Map<String, Executor> executors = new LinkedHashMap<>();
  private final Set<String> leaving = new TreeSet<>();
  private final Map<Integer, Registered> registered = new HashMap<>();
  private final Map<Integer, ShuffleLedger> shuffles = new TreeMap<>();
  private final Map<String, Executor> known = new HashMap<>();
  private long shufflesWritten;
  private HomeChooser.Balance lastWritten = new HomeChooser.Balance(0, 1, 1);
  private long homesLost;
  private long attemptsRefused;
  private long incompleteReads;

  /**
   * @param planShare share of a shuffle's maps that must have committed before its partitions are placed
   * @param strict whether a map that runs again must write the same values too, and not only the same keys
   */
  public Coordinator(MapOutputs outputs, Announcer announcer, double planShare, Recovery recovery, boolean strict) {
    this.outputs = outputs;
    this.announcer = announcer;
    this.planShare = planShare;
    this.recovery = recovery;
    redo = new RedoProof(outputs, announcer, strict, shuffles.values());
  }

  public synchronized void executorAdded(Executor executor) {
    executors.put(executor.id(), executor);
    known.put(executor.id(), executor);
    for (ShuffleLedger s : shuffles.values()) {
      for (String home : s.homes.unfit(executors.keySet())) {
        loseHome(s, home, "executor " + home + " was lost or cannot store", Set.of());
      }
    }
  }

  public synchronized List<String> executors() {
    return new ArrayList<>(executors.keySet());
  }

  /** The executor is gone: its partitions are tainted, and so is what had not left it. */
  public synchronized void executorLost(String id) {
    if (executors.remove(id) == null) {
      return;
    }
    leaving.remove(id);
    for (ShuffleLedger s : shuffles.values()) {
      loseHome(s, id, "executor " + id + " was lost", s.loseSender(id));
    }
  }

  /** The executors that are being decommissioned. */
  public synchronized List<String> leaving() {
    return List.copyOf(leaving);
  }

  /**
   * The executor will end, and can send what it has: its partitions get new homes, unless there is no other executor.
   *
   * @return the shuffles of which it may have something, each with the epoch of its plan (0 if there is none); see
   *     {@link #handedOver}
   */
  public synchronized Map<Integer, Integer> leaving(String id) {
    Map<Integer, Integer> epochs = new TreeMap<>();
    int given = 0;
    if (executors.containsKey(id)) {
      leaving.add(id);
      for (ShuffleLedger s : shuffles.values()) {
        Plan before = s.homes.plan();
        BitSet moved = s.homes.leave(id, executors());
        if (s.homes.plan() != before) {
          announcer.publish(placed(s.homes.plan(), moved, id));
        }
        given += moved.cardinality();
        epochs.put(s.id, s.homes.epoch());
      }
    }
    if (given > 0) {
      announcer.log("executor " + id + " is being decommissioned; it hands over " + given + " partitions to executors that stay");
    }
    return epochs;
  }

  /**
   * The executor, which is leaving, has sent all that it had of the shuffle by the plan of {@code epoch}: nothing is
   * lost when it ends. Map outputs that are registered there are registered elsewhere, so that Spark does not make them
   * again.
   */
  public synchronized void handedOver(int shuffle, String id, int epoch) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s != null && executors.containsKey(id)) {
      s.homes.handedOver(id, epoch);
      List<Executor> to = staying(s);
      if (!to.isEmpty()) {
        outputs.move(shuffle, id, to);
      }
    }
  }

  /**
   * The homes of a shuffle, one for each of their partitions, or all executors if it has none; without those that are
   * leaving.
   */
  private List<Executor> staying(ShuffleLedger s) {
    return (s.homes.plan() == null ? executors.keySet().stream() : Arrays.stream(s.homes.plan().homes())).filter(home -> !leaving.contains(home))
        .map(known::get).toList();
  }

  /** The executor lives but can no longer hold partitions of this shuffle. */
  public synchronized void homeLost(int shuffle, String id, String reason) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s != null) {
      loseHome(s, id, reason, Set.of());
    }
  }

  public synchronized void shuffleAdded(int shuffle, int maps, int partitions, Dependency dependency) {
    registered.values().removeIf(r -> r.dependency.isCollected());
    registered.put(shuffle, new Registered(maps, partitions, dependency, 1));
  }

  /** Forgets the output of a shuffle. As long as the program holds the dependency the shuffle may be written again. */
  public synchronized void shuffleRemoved(int shuffle) {
    ShuffleLedger s = shuffles.remove(shuffle);
    if (s != null) {
      registered.computeIfPresent(shuffle, (id, r) -> new Registered(r.maps, r.partitions, r.dependency,
          Math.max(r.firstEpoch, s.homes.epoch()) + 1));
    }
  }

  public synchronized Emission start(int shuffle, int mapIndex, long attempt, String executor) {
    ShuffleLedger s = ledger(shuffle);
    require(mapIndex >= 0 && mapIndex < s.maps, "map " + mapIndex, s);
    logLosses(s);
    return s.start(mapIndex, attempt, executor);
  }

  /** Checks a number of a message before memory is allocated for it. */
  private static void require(boolean holds, String what, ShuffleLedger s) {
    if (!holds) {
      throw new IllegalArgumentException("a message names " + what + " of shuffle " + s.id + ", which has " + s.maps + " maps and "
          + s.partitions + " partitions");
    }
  }

  public synchronized CommitResult commit(int shuffle, long attempt, long records, long millis, long[] sizes, Digest digest) {
    ShuffleLedger s = ledger(shuffle);
    require(sizes.length == s.partitions && Arrays.stream(sizes).allMatch(size -> size >= 0), sizes.length + " sizes", s);
    if (!s.isWhole(attempt) || !redo.proves(s, attempt, digest)) {
      attemptsRefused++;
      return new CommitResult(false, false, null, sizes, 0);
    }
    boolean planned = s.homes.plan() != null;
    boolean writtenBefore = s.homes.allWritten();
    StatusShaper.Status status = s.commit(attempt, records, millis, sizes, digest, executors(), planShare);
    if (!planned && s.homes.plan() != null) {
      announce(s);
    }
    if (s.homes.allWritten() && !writtenBefore) {
      announcer.log("shuffle " + shuffle + " is written: " + s.homes.describe());
      shufflesWritten++;
      lastWritten = s.homes.balance();
    }
    return new CommitResult(true, s.homes.allWritten(), location(s, status.location()), status.sizes(), s.digest(attempt).rows());
  }

  /**
   * The executor that a map status names; another one if that is leaving, because Spark would make its map outputs
   * again.
   */
  private Executor location(ShuffleLedger s, String id) {
    return leaving.contains(id) ? staying(s).stream().findFirst().orElse(known.get(id)) : known.get(id);
  }

  /** The plan; made now if there is none yet. Null if there are no executors, or the shuffle is gone. */
  public synchronized PlanUpdate placed(int shuffle) {
    Plan plan = has(shuffle) ? plan(shuffle) : null;
    return plan == null ? null : placed(plan, new BitSet());
  }

  private Plan plan(int shuffle) {
    ShuffleLedger s = ledger(shuffle);
    if (s.homes.plan() == null && s.homes.decide(executors()) != null) {
      announce(s);
    }
    return s.homes.plan();
  }

  /**
   * A task attempt begins to read.
   *
   * @param statusesFrom the epoch of the map statuses that it has, by Spark's map output tracker
   * @return null if its map statuses may name outputs that have been replaced since
   */
  public synchronized Location locate(int shuffle, int start, int end, long attempt, int stage, long statusesFrom) {
    ShuffleLedger s = ledger(shuffle);
    require(start >= 0 && start <= end && end <= s.partitions, "partitions " + start + " to " + end, s);
    logLosses(s);
    if (!s.replaced.isEmpty() && outputs.unregister(shuffle, s.replaced)) { // a map status of one came late
      s.statusesFrom = outputs.trackerEpoch();
    }
    return statusesFrom >= s.statusesFrom && s.readers.begins(attempt, stage) ? locate(shuffle, start, end) : null;
  }

  /** A task attempt has read its input. False if a part of that was replaced meanwhile, so that the task must fail. */
  public synchronized boolean readingEnds(int shuffle, long attempt) {
    ShuffleLedger s = shuffles.get(shuffle);
    return s == null || s.readers.ends(attempt);
  }

  /** A task has succeeded, as Spark sees it. */
  public synchronized void taskSucceeded(long attempt) {
    shuffles.values().forEach(s -> s.taskSucceeded(attempt));
  }

  /** The results of a stage that writes no map output have been delivered. */
  public synchronized void stageDelivered(int stage) {
    shuffles.values().forEach(s -> s.readers.delivered(stage));
  }

  private Location locate(int shuffle, int start, int end) {
    Plan plan = plan(shuffle);
    if (plan == null) {
      throw new IllegalStateException("shuffle " + shuffle + " has no executor to live on");
    }
    List<Executor> homes = Arrays.stream(plan.homes(), start, end).map(known::get).toList();
    return new Location(plan.epoch(), homes, ledger(shuffle).lineage());
  }

  /**
   * A reader found winners of a partition incomplete after a flush.
   *
   * @param home the home it read from if that could not be reached, else null
   * @return true if homes have changed and nothing is lost, so that looking again (after a flush) may find them
   *     complete
   */
  public synchronized boolean missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) {
    ShuffleLedger s = ledger(shuffle);
    require(partition >= 0 && partition < s.partitions, "partition " + partition, s);
    incompleteReads++;
    boolean moved = home != null && s.homes.plan() != null
        && (!s.homes.plan().homes()[partition].equals(home) || loseHome(s, home, reason, Set.of()));
    if (moved && s.whole(partition, winners.values())) {
      return true;
    }
    if (s.missing(partition, winners.values())) {
      BitSet one = new BitSet();
      one.set(partition);
      s.lost(s.homes.plan() == null ? reason : s.homes.plan().homes()[partition], reason, s.known(winners.values()), one, new BitSet());
    }
    announcer.detail(() -> "shuffle " + shuffle + " partition " + partition + ": " + reason + "; the map outputs " + winners.keySet()
        + " will be made again");
    outputs.unregister(shuffle, Set.copyOf(winners.values()));
    return false;
  }

  /**
   * A reader was given a corrupt segment. The map of the first one runs again; from the second on, wherever it lies,
   * its home counts as lost. If only one map ran again each time, Spark would end the job before all damage is found:
   * it gives a stage four attempts. A task that finds damage at three homes, one after the other, still uses them up.
   *
   * @param winners of the partition, by map
   */
  public synchronized void corrupt(int shuffle, int partition, int map, Map<Integer, Long> winners, String home, String reason) {
    ShuffleLedger s = ledger(shuffle);
    require(partition >= 0 && partition < s.partitions, "partition " + partition, s);
    require(winners.containsKey(map), "map " + map + " without its winner", s);
    Map<Integer, Long> one = Map.of(map, winners.get(map));
    if (s.known(one.values()).isEmpty()) { // from a reader of a shuffle that has been written anew
      missing(shuffle, partition, one, null, reason);
      return;
    }
    ShuffleLedger.CorruptSegment found = new ShuffleLedger.CorruptSegment(home, partition, map, winners.get(map));
    boolean news = s.corrupt.add(found);
    boolean first = s.corrupt.iterator().next().equals(found);
    if (news && s.homes.plan() != null && s.homes.plan().homes()[partition].equals(home)) {
      announcer.warn("shuffle " + shuffle + " partition " + partition + ": " + reason + "; "
          + (first ? "map " + map + " runs again" : "it is not the first, so all that this executor holds of the shuffle is made again")
          + ". Check its disks and the network");
    }
    missing(shuffle, partition, first ? one : winners, first ? null : home, reason);
  }

  /** Begins a flush: the commits it covers, and per executor the attempts that it will have delivered. */
  public synchronized Map<String, List<Long>> flushBegins(int shuffle) {
    Map<String, List<Long>> attempts = new LinkedHashMap<>();
    executors.keySet().forEach(executor -> attempts.put(executor, ledger(shuffle).unflushed(executor)));
    return attempts;
  }

  /** The attempts of an executor whose segments a flush of it that begins now will have delivered. */
  public synchronized List<Long> unflushed(int shuffle, String executor) {
    ShuffleLedger s = shuffles.get(shuffle);
    return s == null ? List.of() : s.unflushed(executor);
  }

  /** Changes whenever something new may have to be delivered: with every commit, and with every plan. */
  public synchronized long version(int shuffle) {
    ShuffleLedger s = shuffles.get(shuffle);
    return s == null ? 0 : s.commits() + ((long) s.homes.epoch() << 32);
  }

  public synchronized void flushed(int shuffle, List<Long> attempts) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s != null) {
      s.flushed(attempts);
    }
  }

  /**
   * Of all shuffles so far: those written, homes lost, attempts that were not to win, reads that found a winner
   * incomplete, and map outputs replaced because their map, run again, wrote something else. Of the last one written,
   * per mille: how far the predicted sizes were off, summed over partitions, of all bytes (1000 if none were
   * predicted); and the fullest home's load over the mean, as placed and as round robin would have.
   */
  public record Counters(long shufflesWritten, long homesLost, long attemptsRefused, long incompleteReads,
      long outputsReplaced, long predictionErrorPerMille, long fullestHomePerMille, long roundRobinPerMille) {}

  public synchronized Counters counters() {
    return new Counters(shufflesWritten, homesLost, attemptsRefused, incompleteReads, redo.outputsReplaced(),
        Math.round(1000 * lastWritten.error()), Math.round(1000 * lastWritten.placed()), Math.round(1000 * lastWritten.roundRobin()));
  }

  public synchronized boolean has(int shuffle) {
    return shuffles.containsKey(shuffle) || registered.containsKey(shuffle);
  }

  /** Also gives up {@code unsent}, attempts whose segments had not all left. True if the executor kept something. */
  private boolean loseHome(ShuffleLedger s, String home, String reason, Set<Long> unsent) {
    ShuffleLedger.Loss loss = executors.isEmpty() ? null : s.loseHome(home, executors());
    Set<Long> attempts = new HashSet<>(unsent);
    if (loss != null) {
      homesLost++;
      attempts.addAll(loss.attempts());
      announcer.publish(placed(s.homes.plan(), loss.refill()));
    }
    if (!attempts.isEmpty()) {
      outputs.unregister(s.id, attempts);
    }
    BitSet held = loss == null ? new BitSet() : loss.partitions();
    s.lost(home, reason, attempts, held, loss == null ? new BitSet() : loss.refill());
    announcer.detail(() -> "shuffle " + s.id + ": " + reason + "; partitions " + held + " were there, map attempts " + attempts
        + " have lost output: " + s.homes.describe());
    return loss != null;
  }

  /** A task uses the shuffle: the log names what was lost since the last one did. */
  private void logLosses(ShuffleLedger s) {
    if (!s.losses.isEmpty()) {
      announcer.log("shuffle " + s.id + ": " + s.losses.take());
    }
  }

  private void announce(ShuffleLedger s) {
    announcer.log("shuffle " + s.id + ": " + s.homes.describe());
    announcer.publish(placed(s.homes.plan(), new BitSet()));
  }

  private PlanUpdate placed(Plan plan, BitSet refill) {
    return placed(plan, refill, "");
  }

  private PlanUpdate placed(Plan plan, BitSet refill, String giver) {
    return new PlanUpdate(plan, Stream.concat(Arrays.stream(plan.homes()), Arrays.stream(plan.replicas())).distinct()
        .filter(id -> !id.isEmpty()).map(known::get).toList(), refill, giver);
  }

  private ShuffleLedger ledger(int shuffle) {
    return shuffles.computeIfAbsent(shuffle, id -> {
      Registered r = registered.get(id);
      if (r == null) {
        throw new IllegalStateException("shuffle " + id + " is not registered, or was removed");
      }
      return new ShuffleLedger(id, r.maps, r.partitions, r.dependency, recovery, r.firstEpoch, leaving);
    });
  }
}
