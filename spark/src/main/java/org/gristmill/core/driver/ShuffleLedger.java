package org.gristmill.core.driver;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.Recovery;

/**
 * The driver's knowledge of one shuffle: which attempts ran and committed, where its partitions live
 * ({@link HomeChooser}), and the taint table: what of each attempt's output is lost. How much is lost with a home
 * depends on {@link Recovery}.
 *
 * <p>Taint-redo: a map that runs again emits only the partitions that its last committed attempt has lost, and inherits
 * the others from that attempt ({@link Emission}). ReaderTasks follow the inheritance with {@link Lineage}. A stage
 * whose output is not determinate inherits nothing.
 *
 * <p>Not thread safe; {@link Coordinator} guards it.
 */
final class ShuffleLedger {
  /**
   * An attempt has not written what {@code first} had, an earlier attempt of the same map. {@code stands} if nothing of
   * that one is lost; {@code partial} if the attempt has written only some partitions, and inherits the others from the
   * one that it differs from. {@code details} is for the log.
   */
  record Difference(Digest.Change change, int shuffle, int map, long first, boolean stands, boolean partial, String details) {}

  /**
   * The loss of a home: attempts whose output is no longer whole, and its partitions, of which their senders send
   * {@code refill} again.
   */
  record Loss(Set<Long> attempts, BitSet partitions, BitSet refill) {}

  /** Where a corrupt segment lies, and the attempt that is the winner of its map. */
  record CorruptSegment(String home, int partition, int map, long winner) {}

  final int id;
  final int maps;
  final int partitions;
  private final Dependency dependency;
  private final Recovery recovery;
  private final int firstEpoch;
  final HomeChooser homes;
  private final StatusShaper shaper;
  private final Map<Long, Attempt> attempts = new HashMap<>();
  private final Map<Integer, Attempt> committed = new HashMap<>();
  final Set<Long> replaced = new HashSet<>(); // were revoked; Spark may note a map status of theirs that comes late
  final ReaderTasks readers = new ReaderTasks();
  final Losses losses = new Losses();
  private byte[] typical; // size codes of the first map that has committed
  private int commits;
  private final Set<Long> tolerated = new HashSet<>(); // differ from the attempt before them in values only
  private boolean differs; // a map has run again, and its records may be in other partitions
  /**
   * Readers must have map statuses from this epoch of Spark's map output tracker on; older ones may name attempts that
   * were revoked.
   */
  long statusesFrom;
  private Lineage lineage = Lineage.NONE;
  private int lineageChanges;
  private boolean lineageGrew;
  final Set<CorruptSegment> corrupt = new LinkedHashSet<>(); // those that readers were given, the first one first
  private boolean stood; // an attempt that differs stands for the first of its map

  /**
   * @param firstEpoch of its first plan; above that of every earlier ledger of the shuffle
   * @param leaving the executors that are being decommissioned, as it is from now on
   */
  ShuffleLedger(int id, int maps, int partitions, Dependency dependency, Recovery recovery, int firstEpoch,
      Set<String> leaving) {
    this.id = id;
    this.maps = maps;
    this.partitions = partitions;
    this.dependency = dependency;
    this.recovery = recovery;
    this.firstEpoch = firstEpoch;
    homes = new HomeChooser(id, maps, partitions, recovery, firstEpoch, leaving);
    shaper = new StatusShaper(maps, partitions);
  }

  /** Counts up with every commit. */
  int commits() {
    return commits;
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

  /**
   * False if a home that this attempt sends to was lost while it ran, or what it inherits: it must not become a winner.
   */
  boolean isWhole(long attempt) {
    Attempt a = attempts.get(attempt);
    return a != null && a.isWhole();
  }

  /**
   * Taint-redo proves itself: compares the digest of an attempt with those of the last committed attempt of its map and
   * of the ones which that inherits from, and takes the greatest difference. Null if there is none, if there was no
   * attempt, or if Spark calls the stage indeterminate: then nothing of the earlier output is reused.
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
    return new Difference(change, id, a.mapIndex, first.id, first.isWhole(), !a.emission.all(),
        "shuffle " + id + " map " + a.mapIndex + ": " + first.digest + " as task " + first.id + ", " + digest + " as task " + attempt);
  }

  /**
   * A map has run again and its records may be in other partitions: from now on, no redo of this shuffle may differ in
   * anything.
   */
  void distrust() {
    differs = true;
  }

  /** True if a map of this shuffle may have moved records when it ran again. */
  boolean isDistrusted() {
    return differs;
  }

  /**
   * Notes that {@code attempt} differs in values only from the one before it, and counts all the same. True for the
   * first of the shuffle.
   */
  boolean tolerate(long attempt) {
    tolerated.add(attempt);
    return tolerated.size() == 1;
  }

  boolean hasTolerated() {
    return !tolerated.isEmpty();
  }

  /** Attempts whose map statuses stand for partitions of attempts that differ in values. */
  List<Long> mixed() {
    return attempts.values().stream().filter(a -> tolerated.contains(a.id) && !a.lostAll && !a.emission.all()).map(a -> a.id).toList();
  }

  /**
   * What {@code attempt} wrote is not read: it stands for {@code first}, another attempt of the same map, as if it had
   * not run.
   */
  void standFor(long first, long attempt) {
    attempts.get(attempt).emission = new Emission(false, Attempt.NOTHING, first);
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

  /** The digest of what stands for an attempt that has committed. */
  Digest digest(long attempt) {
    return attempts.get(attempt).digest;
  }

  /**
   * An attempt that is whole has written all its segments. Decides the plan if it is time, and says what the map status
   * should say.
   */
  StatusShaper.Status commit(long attemptId, long inputRecords, long millis, long[] sizes, Digest digest, List<String> executors,
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
      homes.written(a.executor, inputRecords, millis, sizes);
    }
    Plan plan = homes.decideInTime(executors, planShare);
    StatusShaper.Status status = before == null
        ? shaper.first(sizes, a.executor, plan, homes.allWritten() || executors.size() == 1)
        : shaper.again(sizes, before.wrote, before.reported, a.executor, plan);
    a.reported = status.sizes() == sizes ? a.wrote : packed(SizeCode.encode(status.sizes()), before == null ? null : before.reported);
    a.empty = status.empty().isEmpty() ? Attempt.NOTHING : status.empty();
    lineageGrew |= !a.empty.isEmpty();
    return status;
  }

  /**
   * Maps are compared with the first one that has committed; most attempts that follow another of their map are the
   * same.
   */
  private PackedSizes packed(byte[] codes, PackedSizes before) {
    if (before != null && Arrays.equals(codes, before.codes())) {
      return before;
    }
    typical = typical == null ? codes : typical;
    return PackedSizes.of(codes, typical);
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
    HomeChooser.Moved moved = homes.lose(executor, executors);
    return moved == null ? null : taint(moved.held(), moved.lost(), executors);
  }

  private Loss taint(BitSet held, BitSet moved, List<String> executors) {
    BitSet refill = new BitSet();
    if (recovery == Recovery.RESEND) { // not to a home that has lost the partition before: it may still have broken pieces
      moved.stream().filter(p -> !homes.isAtLostHome(p)).forEach(refill::set);
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
        a.lose(gone, shared);
        lost.add(a.id);
      }
    }
    return new Loss(lost, held, refill);
  }

  /** The attempt whose segments are read for this attempt's output of a partition. */
  private Attempt writer(Attempt attempt, int partition) {
    Attempt a = attempt;
    while (!a.emission.includes(partition)) {
      a = attempts.get(a.emission.base());
    }
    return a;
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
        a.lose(gone, shared);
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

  /** True if nothing that these attempts have in the partition is known to be lost. */
  boolean whole(int partition, Collection<Long> winners) {
    return winners.stream().map(attempts::get).noneMatch(a -> a == null || a.lostAll || a.lost.get(partition));
  }

  /** The attempts of an executor whose segments a flush started now will have delivered. */
  List<Long> unflushed(String executor) {
    return attempts.values().stream().filter(a -> a.committed && !a.flushed && a.executor.equals(executor)).map(a -> a.id).toList();
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
}
