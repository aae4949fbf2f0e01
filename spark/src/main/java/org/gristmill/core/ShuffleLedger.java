package org.gristmill.core;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * What the driver knows of one shuffle: which attempts ran and committed, how large the partitions are and where they live,
 * and the taint table: what of each attempt's output is lost.
 *
 * <p>Taint-redo: a map that runs again emits only the partitions that its last committed attempt has lost, and inherits the
 * others from that attempt ({@link Emission}). Readers follow the inheritance with {@link Lineage}. A stage whose output is not
 * determinate inherits nothing.
 *
 * <p>Not thread safe; {@link Coordinator} guards it.
 */
final class ShuffleLedger {
  private static final class Attempt {
    final long id;
    final int mapIndex;
    final String executor;
    final Emission emission;
    final BitSet lost = new BitSet();
    boolean lostAll;
    boolean flushed;
    boolean committed;
    byte[] sizeCodes;

    Attempt(long id, int mapIndex, String executor, Emission emission) {
      this.id = id;
      this.mapIndex = mapIndex;
      this.executor = executor;
      this.emission = emission;
    }
  }

  /** What an executor has done of this shuffle's maps. */
  private record Work(int maps, long records, long millis) {
    double speed() {
      return (double) records / millis;
    }

    Work plus(Work more) {
      return new Work(maps + more.maps, records + more.records, millis + more.millis);
    }
  }

  final int id;
  final int maps;
  final int partitions;
  private final BooleanSupplier determinate;
  private final StatusShaper shaper;
  private final SizeModel model;
  private final Map<Long, Attempt> attempts = new HashMap<>();
  private final Map<Integer, Attempt> committed = new HashMap<>();
  private final Map<String, Work> work = new HashMap<>();
  private final Set<String> lostHomes = new HashSet<>();
  private final long[] totals;
  private long records;
  private int commits;
  private Plan plan;
  private long[] predicted;

  ShuffleLedger(int id, int maps, int partitions, BooleanSupplier determinate) {
    this.id = id;
    this.maps = maps;
    this.partitions = partitions;
    this.determinate = determinate;
    shaper = new StatusShaper(maps, partitions);
    model = new SizeModel(partitions);
    totals = new long[partitions];
  }

  Plan plan() {
    return plan;
  }

  /** Counts up with every commit. */
  int commits() {
    return commits;
  }

  boolean allCommitted() {
    return committed.size() == maps;
  }

  /** An attempt begins: what must it emit? */
  Emission start(int mapIndex, long attempt, String executor) {
    Attempt base = committed.get(mapIndex);
    Emission emission = Emission.ALL;
    if (base != null && !base.lostAll && determinate.getAsBoolean()) {
      emission = new Emission(false, (BitSet) base.lost.clone(), base.id);
    }
    attempts.put(attempt, new Attempt(attempt, mapIndex, executor, emission));
    return emission;
  }

  /**
   * An attempt has written all its segments. Decides the plan if it is time, and says what the map status should say.
   *
   * @return null if a home that this attempt sends to was lost while it ran: it must not become a winner
   */
  StatusShaper.Status commit(long attemptId, long inputRecords, long millis, long[] sizes, List<String> homes,
      double planShare) {
    Attempt a = attempts.get(attemptId);
    if (a == null || a.lostAll || !a.lost.isEmpty()) {
      return null;
    }
    Attempt before = committed.put(a.mapIndex, a);
    a.committed = true;
    commits++;
    if (!a.emission.all()) {
      Attempt base = attempts.get(a.emission.base());
      for (int p = 0; p < partitions; p++) {
        sizes[p] = a.emission.partitions().get(p) ? sizes[p] : SizeCode.decode(base.sizeCodes[p]);
      }
    }
    a.sizeCodes = SizeCode.encode(sizes);
    if (before == null) {
      records += inputRecords;
      for (int p = 0; p < partitions; p++) {
        totals[p] += sizes[p];
      }
      model.add(records, totals);
      work.merge(a.executor, new Work(1, inputRecords, Math.max(1, millis)), Work::plus);
    }
    int enough = Math.max(4, (int) Math.ceil(planShare * maps));
    if (plan == null && (allCommitted() || committed.size() >= enough)) {
      decide(homes);
    }
    return shaper.shape(sizes, a.executor, plan, before == null, allCommitted());
  }

  /** Makes the first plan from what is known now: exact sizes, predicted ones, or none (round robin). */
  Plan decide(List<String> executors) {
    if (plan == null && !executors.isEmpty()) {
      String[] nodes = candidates(executors);
      predicted = allCommitted() ? totals.clone()
          : committed.isEmpty() ? null : model.predict((double) records / committed.size() * maps);
      int[] home = predicted == null ? Placement.roundRobin(partitions, nodes.length)
          : Placement.longestFirst(atLeastOne(predicted), speeds(nodes));
      plan = new Plan(id, 1, Arrays.stream(home).mapToObj(n -> nodes[n]).toArray(String[]::new));
    }
    return plan;
  }

  /**
   * A home is gone or cannot store: its partitions are tainted in every attempt and get new homes.
   *
   * @return true if it was a home
   */
  boolean loseHome(String executor, List<String> executors) {
    BitSet tainted = new BitSet();
    if (plan != null) {
      for (int p = 0; p < partitions; p++) {
        tainted.set(p, plan.homes()[p].equals(executor));
      }
    }
    lostHomes.add(executor);
    if (tainted.isEmpty()) {
      return false;
    }
    attempts.values().forEach(a -> a.lost.or(tainted));
    rehome(tainted, candidates(executors));
    return true;
  }

  /** Homes that are gone or cannot store, and stayed homes because there was no other executor. */
  List<String> unfitHomes(Set<String> alive) {
    return plan == null ? List.of() : Arrays.stream(plan.homes()).distinct()
        .filter(home -> !alive.contains(home) || lostHomes.contains(home)).toList();
  }

  /** An executor is gone, and with it the pages that had not left it. Returns its committed attempts by map index. */
  Map<Integer, Long> loseSender(String executor) {
    Map<Integer, Long> lost = new HashMap<>();
    for (Attempt a : attempts.values()) {
      if (a.executor.equals(executor) && !a.flushed) {
        a.lostAll = true;
        if (a.committed) {
          lost.put(a.mapIndex, a.id);
        }
      }
    }
    return lost;
  }

  /** A reader did not find an attempt's segments of a partition. */
  void missing(int partition, Map<Integer, Long> winners) {
    for (long winner : winners.values()) {
      Attempt a = attempts.get(winner);
      if (a != null) {
        a.lost.set(partition);
      }
    }
  }

  /** The attempts of an executor whose segments a flush started now will have delivered. */
  List<Long> unflushed(String executor) {
    List<Long> found = new ArrayList<>();
    for (Attempt a : attempts.values()) {
      if (a.committed && !a.flushed && a.executor.equals(executor)) {
        found.add(a.id);
      }
    }
    return found;
  }

  void flushed(List<Long> ids) {
    ids.forEach(attempt -> attempts.get(attempt).flushed = true);
  }

  Lineage lineage() {
    Map<Long, Emission> partial = new LinkedHashMap<>();
    for (Attempt a : attempts.values()) {
      if (!a.emission.all()) {
        partial.put(a.id, a.emission);
      }
    }
    return new Lineage(partial);
  }

  /** One line on the plan for the log. */
  String describe() {
    if (plan == null) {
      return "no plan";
    }
    List<String> nodes = Arrays.stream(plan.homes()).distinct().sorted().toList();
    int[] home = Arrays.stream(plan.homes()).mapToInt(nodes::indexOf).toArray();
    double predictedLoad = predicted == null ? Double.NaN : Placement.imbalance(home, predicted, nodes.size());
    return String.format("epoch %d, %d partitions on %d executors, %s after %d of %d maps (fit %.3f), fullest home %.3f x the"
            + " mean predicted, %.3f x so far; round robin %.3f x so far", plan.epoch(), partitions, nodes.size(),
        predicted == null ? "round robin" : "longest first", committed.size(), maps, model.fit(), predictedLoad,
        Placement.imbalance(home, totals, nodes.size()),
        Placement.imbalance(Placement.roundRobin(partitions, nodes.size()), totals, nodes.size()));
  }

  private void rehome(BitSet tainted, String[] nodes) {
    double[] loads = new double[nodes.length];
    long[] sizes = atLeastOne(predicted == null || allCommitted() ? totals : predicted);
    for (int p = 0; p < partitions; p++) {
      int node = Arrays.asList(nodes).indexOf(plan.homes()[p]);
      if (!tainted.get(p) && node >= 0) {
        loads[node] += sizes[p];
      }
    }
    int[] moved = tainted.stream().toArray();
    int[] home = Placement.longestFirst(Arrays.stream(moved).mapToLong(p -> sizes[p]).toArray(), ones(nodes.length), loads);
    String[] homes = plan.homes().clone();
    for (int i = 0; i < moved.length; i++) {
      homes[moved[i]] = nodes[home[i]];
    }
    plan = new Plan(id, plan.epoch() + 1, homes);
  }

  /** Executors that may be homes: not those this shuffle has lost, unless there are no others. */
  private String[] candidates(List<String> executors) {
    String[] good = executors.stream().filter(e -> !lostHomes.contains(e)).toArray(String[]::new);
    return good.length > 0 ? good : executors.toArray(String[]::new);
  }

  /**
   * Records per second of map task on each node over the mean. 1 where too few maps have run to tell, or where it is within a
   * third of the mean: nodes that are alike measure that far apart while they warm up.
   */
  private double[] speeds(String[] nodes) {
    double[] speeds = ones(nodes.length);
    double mean = work.values().stream().mapToDouble(Work::speed).average().orElse(0);
    for (int n = 0; n < nodes.length; n++) {
      Work done = work.get(nodes[n]);
      if (done != null && done.maps >= 4 && mean > 0 && Math.abs(done.speed() / mean - 1) > 1.0 / 3) {
        speeds[n] = Math.max(0.25, done.speed() / mean);
      }
    }
    return speeds;
  }

  private static double[] ones(int n) {
    double[] ones = new double[n];
    Arrays.fill(ones, 1);
    return ones;
  }

  private static long[] atLeastOne(long[] sizes) {
    return Arrays.stream(sizes).map(size -> Math.max(1, size)).toArray();
  }
}
