package org.gristmill.core;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

/**
 * The driver's side: which executors can be homes, and a {@link ShuffleLedger} for each shuffle. Thread safe. What it decides
 * goes out through {@link Cluster}.
 */
public final class Coordinator {
  /** An executor and where its block transfer listens. */
  public record Executor(String id, String host, int port) {}

  /** Homes and lineage that a reader of partitions [start, end) needs. */
  public record Location(int epoch, List<Executor> homes, Lineage lineage) {}

  /**
   * Location and sizes for a map status; {@code accepted} is false if the attempt must not become a winner, {@code complete}
   * true if every map of the shuffle has committed.
   */
  public record Commit(boolean accepted, boolean complete, Executor location, long[] sizes) {}

  /** What the coordinator has done for it. Calls must not block. */
  public interface Cluster {
    /** The map outputs of these attempts (by map index) are not to be used any more. */
    void unregister(int shuffle, Map<Integer, Long> attempts);

    /** All map outputs of the shuffle are not to be used any more. */
    void unregisterAll(int shuffle);

    void publish(Plan plan);

    void log(String line);
  }

  private final Cluster cluster;
  private final double planShare;
  private final Map<String, Executor> executors = new LinkedHashMap<>();
  private final Map<Integer, ShuffleLedger> shuffles = new TreeMap<>();
  private final Map<String, Executor> known = new HashMap<>();
  private long homesLost;
  private long attemptsRefused;
  private long incompleteReads;

  /** @param planShare share of a shuffle's maps that must have committed before its partitions are placed */
  public Coordinator(Cluster cluster, double planShare) {
    this.cluster = cluster;
    this.planShare = planShare;
  }

  public synchronized void executorAdded(Executor executor) {
    executors.put(executor.id, executor);
    known.put(executor.id, executor);
    for (ShuffleLedger s : shuffles.values()) {
      for (String home : s.unfitHomes(executors.keySet())) {
        loseHome(s, home, "executor " + home + " was lost or cannot store");
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
    for (ShuffleLedger s : shuffles.values()) {
      Map<Integer, Long> unsent = s.loseSender(id);
      if (!loseHome(s, id, "executor " + id + " was lost") && !unsent.isEmpty()) {
        cluster.unregister(s.id, unsent);
      }
    }
  }

  /** The executor lives but can no longer hold partitions of this shuffle. */
  public synchronized void homeLost(int shuffle, String id, String reason) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s != null) {
      loseHome(s, id, reason);
    }
  }

  public synchronized void shuffleAdded(int shuffle, int maps, int partitions, BooleanSupplier determinate) {
    shuffles.put(shuffle, new ShuffleLedger(shuffle, maps, partitions, determinate));
  }

  public synchronized void shuffleRemoved(int shuffle) {
    shuffles.remove(shuffle);
  }

  public synchronized Emission start(int shuffle, int mapIndex, long attempt, String executor) {
    return ledger(shuffle).start(mapIndex, attempt, executor);
  }

  public synchronized Commit commit(int shuffle, long attempt, long records, long millis, long[] sizes) {
    ShuffleLedger s = ledger(shuffle);
    boolean planned = s.plan() != null;
    StatusShaper.Status status = s.commit(attempt, records, millis, sizes, executors(), planShare);
    if (!planned && s.plan() != null) {
      announce(s);
    }
    if (status == null) {
      attemptsRefused++;
      return new Commit(false, false, null, sizes);
    }
    if (s.allCommitted() && s.commits() == s.maps) {
      cluster.log("shuffle " + shuffle + " is written: " + s.describe());
    }
    return new Commit(true, s.allCommitted(), known.get(status.location()), status.sizes());
  }

  /** The plan; made now if there is none yet. Null if there are no executors. */
  public synchronized Plan plan(int shuffle) {
    ShuffleLedger s = ledger(shuffle);
    if (s.plan() == null && s.decide(executors()) != null) {
      announce(s);
    }
    return s.plan();
  }

  public synchronized Location locate(int shuffle, int start, int end) {
    Plan plan = plan(shuffle);
    if (plan == null) {
      throw new IllegalStateException("shuffle " + shuffle + " has no executor to live on");
    }
    List<Executor> homes = new ArrayList<>();
    for (int p = start; p < end; p++) {
      homes.add(known.get(plan.homes()[p]));
    }
    return new Location(plan.epoch(), homes, ledger(shuffle).lineage());
  }

  /**
   * A reader found winners of a partition incomplete after a flush.
   *
   * @param home the home it read from if that could not be reached, else null
   */
  public synchronized void missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) {
    ShuffleLedger s = ledger(shuffle);
    incompleteReads++;
    s.missing(partition, winners);
    cluster.log("shuffle " + shuffle + " partition " + partition + ": " + reason + "; the map outputs " + winners.keySet()
        + " will be made again");
    if (home == null || !s.plan().homes()[partition].equals(home) || !loseHome(s, home, reason)) {
      cluster.unregister(shuffle, winners);
    }
  }

  /** Begins a flush: the commits it covers, and per executor the attempts that it will have delivered. */
  public synchronized Map<String, List<Long>> flushBegins(int shuffle) {
    Map<String, List<Long>> attempts = new LinkedHashMap<>();
    for (String executor : executors.keySet()) {
      attempts.put(executor, ledger(shuffle).unflushed(executor));
    }
    return attempts;
  }

  public synchronized int commits(int shuffle) {
    ShuffleLedger s = shuffles.get(shuffle);
    return s == null ? 0 : s.commits();
  }

  public synchronized void flushed(int shuffle, List<Long> attempts) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s != null) {
      s.flushed(attempts);
    }
  }

  /** Of all shuffles so far: homes lost, attempts that were not to win, and reads that found a winner incomplete. */
  public record Counters(long homesLost, long attemptsRefused, long incompleteReads) {}

  public synchronized Counters counters() {
    return new Counters(homesLost, attemptsRefused, incompleteReads);
  }

  public synchronized boolean has(int shuffle) {
    return shuffles.containsKey(shuffle);
  }

  private boolean loseHome(ShuffleLedger s, String home, String reason) {
    if (executors.isEmpty() || !s.loseHome(home, executors())) {
      return false;
    }
    homesLost++;
    cluster.log("shuffle " + s.id + ": " + reason + "; its partitions are made again elsewhere: " + s.describe());
    cluster.publish(s.plan());
    cluster.unregisterAll(s.id);
    return true;
  }

  private void announce(ShuffleLedger s) {
    cluster.log("shuffle " + s.id + ": " + s.describe());
    cluster.publish(s.plan());
  }

  private ShuffleLedger ledger(int shuffle) {
    ShuffleLedger s = shuffles.get(shuffle);
    if (s == null) {
      throw new IllegalStateException("shuffle " + shuffle + " is not registered, or was removed");
    }
    return s;
  }
}
