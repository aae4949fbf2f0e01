package org.gristmill.core.driver;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Settings;

/**
 * Compares what a map writes when it runs again with what it wrote before, and undoes what was made from output that
 * does not stay.
 *
 * <p>Not thread safe; {@link Coordinator} guards it.
 */
final class RedoProof {
  private final MapOutputs outputs;
  private final Announcer announcer;
  private final boolean strict;
  private final Collection<ShuffleLedger> shuffles;
  private long outputsReplaced;

  /**
   * @param strict whether a map that runs again must write the same values too, and not only the same keys
   * @param shuffles all that the driver knows, as they are from now on
   */
  RedoProof(MapOutputs outputs, Announcer announcer, boolean strict, Collection<ShuffleLedger> shuffles) {
    this.outputs = outputs;
    this.announcer = announcer;
    this.strict = strict;
    this.shuffles = shuffles;
  }

  /** Map outputs that were replaced because their map, run again, wrote something else. */
  long outputsReplaced() {
    return outputsReplaced;
  }

  /**
   * Whether an attempt may win. It may if it has written what its map wrote before. If not:
   * <ol>
   * <li>Where nothing is lost of the first attempt, its output stays. This one, which ran at the same time or came too
   *     late, stands for it: readers of either read what the first one wrote.
   * <li>Else, where every partition has the same keys and only values differ, it counts all the same, as with Spark's
   *     own shuffle.
   * <li>Else the first one is replaced, all its partitions; an attempt that would inherit some of them is refused, and
   *     the map runs once more, for all.
   * <li>Tasks that have read the first one must not count. Those still at work fail when they end; what maps of other
   *     shuffles wrote is revoked; where results may have been delivered, the job fails.
   * </ol>
   */
  boolean proves(ShuffleLedger s, long attempt, Digest digest) {
    ShuffleLedger.Difference difference = s.difference(attempt, digest);
    if (difference == null) {
      return true;
    }
    if (difference.stands()) {
      logFirst(s.isFirstToStand(), () -> difference.details() + "; the earlier output is whole, and stays");
      s.standFor(difference.first(), attempt);
      if (difference.change() == Digest.Change.KEYS) {
        distrust(s, difference);
      }
      return true;
    }
    if (difference.change() == Digest.Change.VALUES && !strict && !s.isDistrusted()) {
      tolerate(s, attempt, difference);
      return true;
    }
    outputsReplaced += difference.partial() ? 0 : 1;
    logFirst(s.replaced.isEmpty(), () -> difference.details() + "; all of the earlier output is replaced");
    distrust(s, difference);
    revoke(s, difference.first());
    undo(s.readers.replaced(), difference);
    return !difference.partial();
  }

  /** When one map of a shuffle writes something else, most do. */
  private void logFirst(boolean first, Supplier<String> line) {
    if (first) {
      announcer.log(line.get() + "; further maps of this shuffle that do so are logged at DEBUG");
    } else {
      announcer.detail(line);
    }
  }

  private void tolerate(ShuffleLedger s, long attempt, ShuffleLedger.Difference difference) {
    if (s.tolerate(attempt)) {
      announcer.log(difference.details());
      announcer.warn("Shuffle " + s.id + ": map " + difference.map() + " has run again and has written the same keys with other values, as sums of"
          + " doubles have in another order. The job goes on. If its keys are drawn or counted while it runs, set " + Settings.REDO.key()
          + "=strict");
    }
  }

  /**
   * Records of this shuffle move when maps run again. So what was taken for the same in spite of other values must not
   * count either.
   */
  private void distrust(ShuffleLedger s, ShuffleLedger.Difference difference) {
    if (!s.isDistrusted() && s.hasTolerated()) {
      s.mixed().forEach(attempt -> revoke(s, attempt));
      undo(s.readers.replaced(), difference);
    }
    s.distrust();
  }

  /** True if the attempt is one of the shuffle's. */
  private boolean revoke(ShuffleLedger s, long attempt) {
    Set<Long> revoked = s.revoke(attempt);
    if (!revoked.isEmpty()) {
      outputs.unregister(s.id, revoked);
      s.statusesFrom = outputs.trackerEpoch();
    }
    return !revoked.isEmpty();
  }

  private void undo(List<ReaderTasks.Reader> readers, ShuffleLedger.Difference why) {
    Set<Integer> stages = new TreeSet<>();
    for (ReaderTasks.Reader r : readers) {
      boolean wroteMapOutput = false;
      for (ShuffleLedger other : shuffles) {
        wroteMapOutput |= revoke(other, r.attempt());
      }
      if (!wroteMapOutput && r.ended() && !outputs.unregisterAnywhere(r.attempt())) {
        stages.add(r.stage());
      }
    }
    for (int stage : stages) {
      outputs.fail(stage, "map " + why.map() + " of shuffle " + why.shuffle() + " has run again and has not written what it wrote before, and stage "
          + stage + " has results of that. Going on could lose and double records. checkpoint() the RDD (or write the table) before the"
          + " shuffle, or set " + Settings.RECOVERY.key() + "=replicate");
    }
  }
}
