package org.gristmill.core.driver;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.IntStream;
import org.gristmill.core.plan.Placement;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.Recovery;
import org.gristmill.core.plan.SizeModel;

/**
 * Where the partitions of one shuffle live: the plan, the sizes that it follows from, and how it changes when homes are
 * lost or leave.
 *
 * <p>Not thread safe; {@link Coordinator} guards it.
 */
final class HomeChooser {
  /**
   * How much more than longest first would give it the fullest node may have for the sake of {@link Placement#ranges}.
   */
  private static final double RANGES_FULLEST_MAX = 1.05;
  private static final int SAMPLES_MIN = 4; // written maps; fewer if the shuffle has fewer

  private final int shuffle;
  private final int maps;
  private final int partitions;
  private final Recovery recovery;
  private final int firstEpoch;
  private final Set<String> leaving;
  private final SizeModel model;
  private final MapSpeeds speeds = new MapSpeeds();
  private final Set<String> lostHomes = new HashSet<>();
  private final HandOvers handOvers = new HandOvers();
  private final long[] totals;
  private long records;
  private int written;
  private Plan plan;
  private long[] predicted;
  private String placedBy = "round robin";

  /**
   * @param firstEpoch of its first plan
   * @param leaving the executors that are being decommissioned, as it is from now on
   */
  HomeChooser(int shuffle, int maps, int partitions, Recovery recovery, int firstEpoch, Set<String> leaving) {
    this.shuffle = shuffle;
    this.maps = maps;
    this.partitions = partitions;
    this.recovery = recovery;
    this.firstEpoch = firstEpoch;
    this.leaving = leaving;
    model = new SizeModel(partitions);
    totals = new long[partitions];
    model.add(0, totals); // where nothing was read, nothing was written
  }

  /** Null until there is one. */
  Plan plan() {
    return plan;
  }

  /** The epoch of the plan; 0 if there is none. */
  int epoch() {
    return plan == null ? 0 : plan.epoch();
  }

  /** True if every map has been written once. */
  boolean allWritten() {
    return written == maps;
  }

  /** A map has been written for the first time. */
  void written(String executor, long inputRecords, long millis, long[] sizes) {
    written++;
    records += inputRecords;
    for (int p = 0; p < partitions; p++) {
      totals[p] += sizes[p];
    }
    model.add(records, totals);
    speeds.add(executor, inputRecords, millis);
  }

  /** True if the shuffle has lost the home of this partition before. */
  boolean isAtLostHome(int partition) {
    return lostHomes.contains(plan.homes()[partition]);
  }

  /**
   * How many maps must have committed for a plan: so few that one more status can name each home, or no task would
   * prefer it.
   */
  private int enoughMaps(double planShare, int homes) {
    int wanted = Math.max(SAMPLES_MIN, (int) Math.ceil(planShare * maps));
    return Math.max(1, Math.min(wanted, maps - homes + 1));
  }

  /** Makes the first plan if enough maps are written. Returns the plan, or null. */
  Plan decideInTime(List<String> executors, double planShare) {
    return plan == null && written >= enoughMaps(planShare, executors.size()) ? decide(executors) : plan;
  }

  /** Makes the first plan from what is known now: exact sizes, predicted ones, or none (then round robin). */
  Plan decide(List<String> executors) {
    if (plan == null && !executors.isEmpty()) {
      String[] nodes = candidates(executors);
      predicted = allWritten()
          ? totals.clone()
          : written == 0 ? null : model.predict((double) records / written * maps);
      int[] home = predicted == null ? Placement.roundRobin(partitions, nodes.length) : place(atLeastOne(predicted), speeds.of(nodes));
      plan = new Plan(shuffle, firstEpoch, named(home, nodes), recovery != Recovery.REPLICATE || nodes.length < 2
          ? Plan.none(partitions)
          : named(Placement.secondHomes(home, atLeastOne(predicted == null ? totals : predicted), nodes.length), nodes));
    }
    return plan;
  }

  /**
   * Ranges, unless sizes or speeds are so uneven that the fullest node would have a good deal more than with longest
   * first.
   */
  private int[] place(long[] sizes, double[] speeds) {
    int[] ranges = Placement.ranges(partitions, speeds.length);
    int[] longestFirst = Placement.longestFirst(sizes, speeds);
    boolean even = Placement.fullest(ranges, sizes, speeds) <= RANGES_FULLEST_MAX * Placement.fullest(longestFirst, sizes, speeds);
    placedBy = even ? "ranges" : "longest first";
    return even ? ranges : longestFirst;
  }

  /**
   * An executor is gone or cannot store. {@code held} were at home there; of {@code lost}, nothing is where they are at
   * home now.
   */
  record Moved(BitSet held, BitSet lost) {}

  /** Moves partitions off an executor that is gone or cannot store. Returns null if it kept nothing of this shuffle. */
  Moved lose(String executor, List<String> executors) {
    lostHomes.add(executor);
    BitSet lost = handOvers.failed(executor);
    if (plan == null || !keeps(executor) && lost.isEmpty()) {
      return null;
    }
    BitSet held = homedAt(executor);
    held.or(lost);
    lost.or(moveOff(executor, executors, candidates(executors)));
    handOvers.lost(lost);
    return new Moved(held, lost);
  }

  private boolean keeps(String executor) {
    return Arrays.asList(plan.homes()).contains(executor) || Arrays.asList(plan.replicas()).contains(executor);
  }

  private BitSet homedAt(String executor) {
    return IntStream.range(0, partitions).filter(p -> plan.homes()[p].equals(executor)).collect(BitSet::new, BitSet::set, BitSet::or);
  }

  /**
   * An executor will end, and can send what it has. A partition with a replica moves there, as if the executor were
   * lost; the others move to the least loaded executors, and it must send them there.
   *
   * @return the partitions to send; none if it keeps none, or if no other executor can take them
   */
  BitSet leave(String executor, List<String> executors) {
    List<String> staying = executors.stream().filter(e -> !leaving.contains(e) && !lostHomes.contains(e)).toList();
    if (plan == null || staying.isEmpty() || !keeps(executor)) {
      return new BitSet();
    }
    BitSet moved = moveOff(executor, staying, staying.toArray(new String[0]));
    if (!moved.isEmpty()) {
      handOvers.begin(executor, plan.epoch(), moved);
    }
    return moved;
  }

  /** Everything has arrived that a leaving executor had to send by the plan of {@code epoch}. */
  void handedOver(String executor, int epoch) {
    handOvers.finished(executor, epoch);
  }

  /**
   * Makes the plan without this executor. Returns the partitions that have moved to an executor that has nothing of
   * them.
   */
  private BitSet moveOff(String executor, List<String> replicaHolders, String[] nodes) {
    String[] homes = plan.homes().clone();
    String[] replicas = plan.replicas().clone();
    BitSet moved = new BitSet();
    for (int p = 0; p < partitions; p++) {
      if (replicas[p].equals(executor)) {
        replicas[p] = "";
      } else if (homes[p].equals(executor) && replicaHolders.contains(replicas[p])) {
        homes[p] = replicas[p];
        replicas[p] = "";
      } else if (homes[p].equals(executor)) {
        moved.set(p);
        replicas[p] = "";
      }
    }
    rehome(moved, homes, nodes);
    plan = new Plan(shuffle, plan.epoch() + 1, homes, replicas);
    return moved;
  }

  /** Homes that are gone or cannot store, and stayed homes because there was no other executor. */
  List<String> unfit(Set<String> alive) {
    return plan == null
        ? List.of()
        : Arrays.stream(plan.homes()).distinct()
            .filter(home -> !alive.contains(home) || lostHomes.contains(home)).toList();
  }

  /**
   * The quality of the plan, given the sizes written so far: prediction error, and the fullest home's load over the
   * mean.
   */
  record Balance(double error, double placed, double roundRobin) {}

  Balance balance() {
    List<String> nodes = nodes();
    return new Balance(predicted == null ? 1 : SizeModel.error(predicted, totals), imbalance(totals),
        Placement.imbalance(Placement.roundRobin(partitions, nodes.size()), totals, nodes.size()));
  }

  /** One line on the plan for the log. */
  String describe() {
    if (plan == null) {
      return "no plan";
    }
    Balance now = balance();
    return String.format(Locale.ROOT, "epoch %d, %d partitions on %d executors, %s (fit %.3f); %d of %d maps are written%s; the"
        + " fullest home %.3f x the mean, predicted %.3f x, with round robin %.3f x",
        plan.epoch(), partitions, nodes().size(), placedBy, model.fit(),
        written, maps, allWritten() ? String.format(Locale.ROOT, ", %.3f off the predicted sizes", now.error) : "",
        now.placed, predicted == null ? Double.NaN : imbalance(predicted), now.roundRobin);
  }

  private List<String> nodes() {
    return Arrays.stream(plan.homes()).distinct().sorted().toList();
  }

  private double imbalance(long[] sizes) {
    List<String> nodes = nodes();
    return Placement.imbalance(Arrays.stream(plan.homes()).mapToInt(nodes::indexOf).toArray(), sizes, nodes.size());
  }

  /** Puts the partitions that have moved onto the least loaded nodes. */
  private void rehome(BitSet moved, String[] homes, String[] nodes) {
    double[] loads = new double[nodes.length];
    long[] sizes = atLeastOne(predicted == null || allWritten() ? totals : predicted);
    for (int p = 0; p < partitions; p++) {
      int node = Arrays.asList(nodes).indexOf(homes[p]);
      if (!moved.get(p) && node >= 0) {
        loads[node] += sizes[p];
      }
    }
    int[] which = moved.stream().toArray();
    int[] home = Placement.longestFirst(Arrays.stream(which).mapToLong(p -> sizes[p]).toArray(), Placement.alike(nodes.length), loads);
    for (int i = 0; i < which.length; i++) {
      homes[which[i]] = nodes[home[i]];
    }
  }

  private static String[] named(int[] homes, String[] nodes) {
    return Arrays.stream(homes).mapToObj(n -> nodes[n]).toArray(String[]::new);
  }

  /** Executors that may be homes: none that is leaving or that this shuffle has lost, unless there are no others. */
  private String[] candidates(List<String> executors) {
    List<String> good = executors.stream().filter(e -> !lostHomes.contains(e)).toList();
    List<String> staying = good.stream().filter(e -> !leaving.contains(e)).toList();
    return (!staying.isEmpty() ? staying : !good.isEmpty() ? good : executors).toArray(new String[0]);
  }

  private static long[] atLeastOne(long[] sizes) {
    return Arrays.stream(sizes).map(size -> Math.max(1, size)).toArray();
  }
}
