package org.gristmill.core.driver;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Placement;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.Recovery;
import org.gristmill.core.plan.SizeModel;

/**
 * The driver's knowledge of one shuffle: which attempts ran and committed, how large the partitions are and where they live,
 * and the taint table: what of each attempt's output is lost. How much is lost with a home depends on {@link Recovery}.
 *
 * <p>Taint-redo: a map that runs again emits only the partitions that its last committed attempt has lost, and inherits the
 * others from that attempt ({@link Emission}). ReaderTasks follow the inheritance with {@link Lineage}. A stage whose output is not
 * determinate inherits nothing.
 *
 * <p>Not thread safe; {@link Coordinator} guards it.
 */
final class ShuffleLedger {
  private static final class Attempt {
    final long id;
    final int mapIndex;
    final String executor;
    Emission emission;
    BitSet lost = NOTHING; // never changed, only replaced: attempts that have lost the same share it, and so do their emissions
    boolean lostAll;
    boolean flushed;
    boolean committed;
    boolean succeeded; // Spark has counted its metrics and accumulators
    Digest digest;
    PackedSizes wrote;
    PackedSizes reported; // in its map status
    BitSet empty = NOTHING; // partitions of which its status reports what other attempts wrote

    Attempt(long id, int mapIndex, String executor, Emission emission) {
      this.id = id;
      this.mapIndex = mapIndex;
      this.executor = executor;
      this.emission = emission;
    }
  }

  /**
   * An attempt has not written what {@code first} had, an earlier attempt of the same map. {@code stands} if nothing of that one is lost;
   * {@code partial} if the attempt has written only some partitions, and inherits the others from the one that it differs from.
   * {@code details} is for the log.
   */
  record Difference(Digest.Change change, int shuffle, int map, long first, boolean stands, boolean partial, String details) {}

  /** The loss of a home: attempts whose output is no longer whole, and its partitions, of which their senders send {@code refill} again. */
  record Loss(Set<Long> attempts, BitSet partitions, BitSet refill) {}

  /** How much more than longest first would give it the fullest node may have for the sake of {@link Placement#ranges}. */
  private static final double RANGES_FULLEST_MAX = 1.05;
  private static final BitSet NOTHING = new BitSet();
  private static final int SAMPLES_MIN = 4; // committed maps; fewer if the shuffle has fewer

  final int id;
  final int maps;
  final int partitions;
  private final Coordinator.Dependency dependency;
  private final Recovery recovery;
  private final int firstEpoch;
  private final StatusShaper shaper;
  private final SizeModel model;
  private final Map<Long, Attempt> attempts = new HashMap<>();
  private final Map<Integer, Attempt> committed = new HashMap<>();
  private final MapSpeeds speeds = new MapSpeeds();
  private final Set<Long> replaced = new HashSet<>();
  private final ReaderTasks readers = new ReaderTasks();
  private final Losses losses = new Losses();
  private final Set<String> lostHomes = new HashSet<>();
  private final Set<String> leaving;
  private final HandOvers handOvers = new HandOvers();
  private final long[] totals;
  private byte[] typical; // size codes of the first map that has committed
  private long records;
  private int commits;
  private Plan plan;
  private long[] predicted;
  private String placedBy = "round robin";
  private final Set<Long> tolerated = new HashSet<>(); // differ from the attempt before them in values only
  private boolean differs; // a map has run again, and its records may be in other partitions
  private long statusesFrom;
  private Lineage lineage = Lineage.NONE;
  private int lineageChanges;
  private boolean lineageGrew;
  private boolean stood; // an attempt that differs stands for the first of its map

  /**
   * @param firstEpoch of its first plan; above that of every earlier ledger of the shuffle
   * @param leaving the executors that are being decommissioned, as it is from now on
   */
  ShuffleLedger(int id, int maps, int partitions, Coordinator.Dependency dependency, Recovery recovery, int firstEpoch,
      Set<String> leaving) {
    this.id = id;
    this.maps = maps;
    this.partitions = partitions;
    this.dependency = dependency;
    this.recovery = recovery;
    this.firstEpoch = firstEpoch;
    this.leaving = leaving;
    shaper = new StatusShaper(maps, partitions);
    model = new SizeModel(partitions);
    totals = new long[partitions];
    model.add(0, totals); // where nothing was read, nothing was written
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
    if (base != null && counted(base) && !base.lostAll && dependency.isDeterminate() && (base.lost.isEmpty() || !differs)) {
      emission = new Emission(false, base.lost, base.id);
    }
    attempts.put(attempt, new Attempt(attempt, mapIndex, executor, emission));
    lineageGrew |= !emission.all();
    return emission;
  }

  /** True if Spark has the metrics of this attempt, or of the one that it stands for. */
  private boolean counted(Attempt attempt) {
    Attempt a = attempt;
    while (!a.succeeded && a.emission.nothing()) {
      a = attempts.get(a.emission.base());
    }
    return a.succeeded;
  }

  /** The task of this attempt has succeeded, as Spark sees it. */
  void taskSucceeded(long attempt) {
    Attempt a = attempts.get(attempt);
    if (a != null) {
      a.succeeded = true;
    }
  }

  /** False if a home that this attempt sends to was lost while it ran, or what it inherits: it must not become a winner. */
  boolean isWhole(long attempt) {
    Attempt a = attempts.get(attempt);
    return a != null && isWhole(a);
  }

  private static boolean isWhole(Attempt a) {
    return !a.lostAll && a.lost.isEmpty();
  }

  /**
   * Taint-redo proves itself: compares the digest of an attempt with those of the last committed attempt of its map and of the ones which that
   * inherits from, and takes the greatest difference. Null if there is none, if there was no attempt, or if Spark calls the stage indeterminate:
   * then nothing of the earlier output is reused.
   */
  Difference difference(long attempt, Digest digest) {
    Attempt a = attempts.get(attempt);
    Attempt first = committed.get(a.mapIndex);
    if (a.emission.nothing() || first == null) {
      return null;
    }
    Digest.Change change = Digest.Change.NONE;
    for (Attempt b = first; b != null; b = attempts.get(b.emission.base())) {
      Digest.Change since = digest.since(b.digest, partitions);
      change = since.compareTo(change) > 0 ? since : change;
    }
    if (change == Digest.Change.NONE || !dependency.isDeterminate()) {
      return null;
    }
    return new Difference(change, id, a.mapIndex, first.id, isWhole(first), !a.emission.all(),
        "shuffle " + id + " map " + a.mapIndex + ": " + first.digest + " as task " + first.id + ", " + digest + " as task " + attempt);
  }

  /** A map has run again and its records may be in other partitions: from now on, no redo of this shuffle may differ in anything. */
  void distrust() {
    differs = true;
  }

  /** True if a map of this shuffle may have moved records when it ran again. */
  boolean isDistrusted() {
    return differs;
  }

  /** Notes that {@code attempt} differs in values only from the one before it, and counts all the same. True for the first of the shuffle. */
  boolean tolerate(long attempt) {
    tolerated.add(attempt);
    return tolerated.size() == 1;
  }

  boolean hasTolerated() {
    return !tolerated.isEmpty();
  }

  /** Attempts whose map statuses stand for partitions of attempts that differ in values. */
  List<Long> mixed() {
    List<Long> mixed = new ArrayList<>();
    for (Attempt a : attempts.values()) {
      if (tolerated.contains(a.id) && !a.lostAll && !a.emission.all()) {
        mixed.add(a.id);
      }
    }
    return mixed;
  }

  /** What {@code attempt} wrote is not read: it stands for {@code first}, another attempt of the same map, as if it had not run. */
  void standFor(long first, long attempt) {
    attempts.get(attempt).emission = new Emission(false, NOTHING, first);
    lineageGrew = true;
  }

  /**
   * Nothing of this attempt may be read any more, nor of those that inherit from it.
   *
   * @return all of them; none if the attempt is not one of this shuffle's
   */
  Set<Long> revoke(long attempt) {
    Set<Long> revoked = new HashSet<>();
    for (Attempt a : attempts.values()) {
      for (Attempt b = a; b != null; b = attempts.get(b.emission.base())) {
        if (b.id == attempt) {
          a.lostAll = true;
          revoked.add(a.id);
        }
      }
    }
    replaced.addAll(revoked);
    return revoked;
  }

  /** True once: an attempt has written something else than the first of its map, which stays. */
  boolean isFirstToStand() {
    boolean first = !stood;
    stood = true;
    return first;
  }

  /** Attempts that were revoked; Spark may note a map status of theirs that comes late. */
  Set<Long> replaced() {
    return replaced;
  }

  ReaderTasks readers() {
    return readers;
  }

  /** ReaderTasks must have map statuses from this epoch of Spark's map output tracker on; older ones may name attempts that were revoked. */
  long statusesFrom() {
    return statusesFrom;
  }

  void statusesFrom(long trackerEpoch) {
    statusesFrom = trackerEpoch;
  }

  /** The digest of what stands for an attempt that has committed. */
  Digest digest(long attempt) {
    return attempts.get(attempt).digest;
  }

  /** An attempt that is whole has written all its segments. Decides the plan if it is time, and says what the map status should say. */
  StatusShaper.Status commit(long attemptId, long inputRecords, long millis, long[] sizes, Digest digest, List<String> homes,
      double planShare) {
    Attempt a = attempts.get(attemptId);
    a.digest = a.emission.nothing() ? attempts.get(a.emission.base()).digest : digest;
    Attempt before = committed.put(a.mapIndex, a);
    a.committed = true;
    commits++;
    if (!a.emission.all()) {
      byte[] inherited = attempts.get(a.emission.base()).wrote.codes();
      for (int p = 0; p < partitions; p++) {
        sizes[p] = a.emission.partitions().get(p) ? sizes[p] : SizeCode.decode(inherited[p]);
      }
    }
    a.wrote = packed(SizeCode.encode(sizes), before == null ? null : before.wrote);
    if (before == null) {
      records += inputRecords;
      for (int p = 0; p < partitions; p++) {
        totals[p] += sizes[p];
      }
      model.add(records, totals);
      speeds.add(a.executor, inputRecords, millis);
    }
    if (plan == null && committed.size() >= enoughMaps(planShare, homes.size())) {
      decide(homes);
    }
    StatusShaper.Status status = before == null ? shaper.first(sizes, a.executor, plan, allCommitted() || homes.size() == 1)
        : shaper.again(sizes, before.wrote, before.reported, a.executor, plan);
    a.reported = status.sizes() == sizes ? a.wrote : packed(SizeCode.encode(status.sizes()), before == null ? null : before.reported);
    a.empty = status.empty().isEmpty() ? NOTHING : status.empty();
    lineageGrew |= !a.empty.isEmpty();
    return status;
  }

  /** Maps are compared with the first one that has committed; most attempts that follow another of their map are the same. */
  private PackedSizes packed(byte[] codes, PackedSizes before) {
    if (before != null && Arrays.equals(codes, before.codes())) {
      return before;
    }
    typical = typical == null ? codes : typical;
    return PackedSizes.of(codes, typical);
  }

  /** How many maps must have committed for a plan: so few that one more status can name each home, or no task would prefer it. */
  private int enoughMaps(double planShare, int homes) {
    int wanted = Math.max(SAMPLES_MIN, (int) Math.ceil(planShare * maps));
    return Math.max(1, Math.min(wanted, maps - homes + 1));
  }

  /** Makes the first plan from what is known now: exact sizes, predicted ones, or none (then round robin). */
  Plan decide(List<String> executors) {
    if (plan == null && !executors.isEmpty()) {
      String[] nodes = candidates(executors);
      predicted = allCommitted() ? totals.clone()
          : committed.isEmpty() ? null : model.predict((double) records / committed.size() * maps);
      int[] home = predicted == null ? Placement.roundRobin(partitions, nodes.length) : place(atLeastOne(predicted), speeds.of(nodes));
      plan = new Plan(id, firstEpoch, named(home, nodes), recovery != Recovery.REPLICATE || nodes.length < 2 ? Plan.none(partitions)
          : named(Placement.secondHomes(home, atLeastOne(predicted == null ? totals : predicted), nodes.length), nodes));
    }
    return plan;
  }

  /** Ranges, unless sizes or speeds are so uneven that the fullest node would have a good deal more than with longest first. */
  private int[] place(long[] sizes, double[] speeds) {
    int[] ranges = Placement.ranges(partitions, speeds.length);
    int[] longestFirst = Placement.longestFirst(sizes, speeds);
    boolean even = Placement.fullest(ranges, sizes, speeds) <= RANGES_FULLEST_MAX * Placement.fullest(longestFirst, sizes, speeds);
    placedBy = even ? "ranges" : "longest first";
    return even ? ranges : longestFirst;
  }

  /**
   * An executor is gone or cannot store: partitions at home there get new homes.
   * <ol>
   * <li>A partition with a replica moves there and nothing of it is lost.
   * <li>The others move to the least loaded executors. If senders keep what they sent, those that live send it again.
   * <li>What no sender can send again is lost: it is tainted in every attempt that has it from there.
   * </ol>
   *
   * @return null if it kept nothing of this shuffle
   */
  Loss loseHome(String executor, List<String> executors) {
    lostHomes.add(executor);
    BitSet lost = handOvers.failed(executor);
    if (plan == null || !keeps(executor) && lost.isEmpty()) {
      return null;
    }
    BitSet held = homedAt(executor);
    held.or(lost);
    lost.or(moveOff(executor, executors, candidates(executors)));
    handOvers.lost(lost);
    return taint(held, lost, executors);
  }

  private boolean keeps(String executor) {
    return Arrays.asList(plan.homes()).contains(executor) || Arrays.asList(plan.replicas()).contains(executor);
  }

  private BitSet homedAt(String executor) {
    BitSet held = new BitSet();
    for (int p = 0; p < partitions; p++) {
      held.set(p, plan.homes()[p].equals(executor));
    }
    return held;
  }

  /**
   * An executor will end, and can send what it has. A partition with a replica moves there, as if the executor were lost; the others move
   * to the least loaded executors, and it must send them there.
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

  /** Makes the plan without this executor. Returns the partitions that have moved to an executor that has nothing of them. */
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
    plan = new Plan(id, plan.epoch() + 1, homes, replicas);
    return moved;
  }

  private Loss taint(BitSet held, BitSet moved, List<String> executors) {
    BitSet refill = new BitSet();
    if (recovery == Recovery.RESEND) { // not to a home that has lost the partition before: it may still have broken pieces
      moved.stream().filter(p -> !lostHomes.contains(plan.homes()[p])).forEach(refill::set);
    }
    Set<Long> lost = new HashSet<>();
    Map<BitSet, BitSet> shared = new HashMap<>();
    for (Attempt a : attempts.values()) {
      BitSet gone = new BitSet();
      for (int p = moved.nextSetBit(0); p >= 0; p = moved.nextSetBit(p + 1)) {
        Attempt writer = writer(a, p);
        if (refill.get(p) && !writer.lostAll && executors.contains(writer.executor)) {
          writer.flushed = false;
        } else {
          gone.set(p);
        }
      }
      if (!gone.isEmpty()) {
        lose(a, gone, shared);
        lost.add(a.id);
      }
    }
    return new Loss(lost, held, refill);
  }

  /** {@code shared} has the sets that other attempts have got at the same time. */
  private static void lose(Attempt a, BitSet gone, Map<BitSet, BitSet> shared) {
    BitSet all = (BitSet) gone.clone();
    all.or(a.lost);
    a.lost = shared.computeIfAbsent(all, set -> set);
  }

  /** The attempt whose segments are read for this attempt's output of a partition. */
  private Attempt writer(Attempt attempt, int partition) {
    Attempt a = attempt;
    while (!a.emission.includes(partition)) {
      a = attempts.get(a.emission.base());
    }
    return a;
  }

  /** Homes that are gone or cannot store, and stayed homes because there was no other executor. */
  List<String> unfitHomes(Set<String> alive) {
    return plan == null ? List.of() : Arrays.stream(plan.homes()).distinct()
        .filter(home -> !alive.contains(home) || lostHomes.contains(home)).toList();
  }

  /** An executor is gone, and with it the pages that had not left it. Returns its attempts that are not whole now. */
  Set<Long> loseSender(String executor) {
    Set<Long> lost = new HashSet<>();
    for (Attempt a : attempts.values()) {
      if (a.executor.equals(executor) && !a.flushed) {
        a.lostAll = true;
        lost.add(a.id);
      }
    }
    return lost;
  }

  /** A reader did not find segments of these attempts in a partition. True if that is news. */
  boolean missing(int partition, Collection<Long> winners) {
    boolean news = false;
    BitSet gone = new BitSet();
    gone.set(partition);
    Map<BitSet, BitSet> shared = new HashMap<>();
    for (long winner : winners) {
      Attempt a = attempts.get(winner);
      if (a != null) {
        news |= !a.lostAll && !a.lost.get(partition);
        lose(a, gone, shared);
      }
    }
    return news;
  }

  /** Notes a loss for the log, unless nothing had been written or no job can ask for it any more. */
  void lost(String home, String reason, Set<Long> lost, BitSet held, BitSet refill) {
    if (!attempts.isEmpty() && !dependency.isCollected() && !(lost.isEmpty() && held.isEmpty())) {
      losses.add(home, reason, lost.stream().map(attempt -> attempts.get(attempt).mapIndex).collect(Collectors.toSet()), held, refill);
    }
  }

  /** Those that are attempts of this shuffle. */
  Set<Long> known(Collection<Long> ids) {
    return ids.stream().filter(attempts::containsKey).collect(Collectors.toSet());
  }

  Losses losses() {
    return losses;
  }

  /** True if nothing that these attempts have in the partition is known to be lost. */
  boolean whole(int partition, Collection<Long> winners) {
    return winners.stream().map(attempts::get).noneMatch(a -> a == null || a.lostAll || a.lost.get(partition));
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
    ids.stream().map(attempts::get).filter(Objects::nonNull).forEach(a -> a.flushed = true); // the shuffle may be a new one by now
  }

  /** Made anew only if it has grown: it is asked for by every reader, and changes with few of them. */
  Lineage lineage() {
    if (lineageGrew) {
      Map<Long, Emission> partial = new TreeMap<>();
      for (Attempt a : attempts.values()) {
        if (!a.emission.all()) {
          partial.put(a.id, a.emission.except(a.empty));
        } else if (!a.empty.isEmpty()) {
          partial.put(a.id, Emission.without(a.empty, partitions));
        }
      }
      lineage = new Lineage(((long) firstEpoch << Integer.SIZE) + ++lineageChanges, partial);
      lineageGrew = false;
    }
    return lineage;
  }

  /** The quality of the plan, given the sizes written so far: prediction error, and the fullest home's load over the mean. */
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
        committed.size(), maps, allCommitted() ? String.format(Locale.ROOT, ", %.3f off the predicted sizes", now.error) : "",
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
    long[] sizes = atLeastOne(predicted == null || allCommitted() ? totals : predicted);
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
