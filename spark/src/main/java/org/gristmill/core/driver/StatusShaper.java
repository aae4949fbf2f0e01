package org.gristmill.core.driver;

import java.util.BitSet;
import java.util.Map;
import java.util.TreeMap;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Plan;

/**
 * Local fetch without a patch. Spark prefers to run a reduce task where the map statuses say that at least a fifth of
 * its input lies. A map status has one location, but a partition's data of all maps is at its home; so each status is
 * given one home as location, and reports there, for the partitions of that home, also what earlier statuses left
 * unreported.
 *
 * <ol>
 * <li>Every map adds its sizes to the debt of each partition.
 * <li>The status goes to the home whose partitions have the largest debt, and pays it: the size reported for these is
 *     their whole debt. Other non-empty partitions report 1 byte, empty ones 0: readers expect segments where something
 *     is reported.
 * <li>The last map pays all debts, so that the totals, which adaptive execution reads, are right; also those of
 *     partitions for which it has nothing itself, and readers are told of these ({@link Lineage}).
 * <li>A further attempt of a map reports what the map reported before, corrected by what it has written differently. So
 *     whichever of them Spark keeps, and whatever was lost in between, the reported sizes add up to those written.
 * </ol>
 *
 * At 1000 maps or partitions and above Spark does not look at locations, and statuses are left as they are.
 */
final class StatusShaper {
  private static final int LOCALITY_MAX = 1000;

  /**
   * Location (an executor) and sizes for a map status, and the partitions that have a size there but nothing of this
   * map.
   */
  record Status(String location, long[] sizes, BitSet empty) {}

  private final boolean useful;
  private final long[] debt;

  StatusShaper(int maps, int partitions) {
    useful = maps < LOCALITY_MAX && partitions < LOCALITY_MAX;
    debt = new long[partitions];
  }

  /**
   * The status of a map that reports for the first time.
   *
   * @param payAll true if no map will report after this one, or if there is nothing to choose: one executor has
   *     everything
   */
  Status first(long[] sizes, String ranOn, Plan plan, boolean payAll) {
    if (!useful) {
      return new Status(ranOn, sizes, new BitSet());
    }
    BitSet payable = new BitSet();
    for (int p = 0; p < debt.length; p++) {
      debt[p] += sizes[p];
      payable.set(p, payAll ? debt[p] > 0 : sizes[p] > 0);
    }
    String location = plan == null || payable.isEmpty() ? ranOn : largestHome(plan, payable, debt);
    long[] reported = new long[sizes.length];
    BitSet empty = new BitSet();
    payable.stream().forEach(p -> {
      boolean pays = payAll || plan != null && plan.homes()[p].equals(location);
      reported[p] = pays ? debt[p] : 1;
      debt[p] -= reported[p];
      empty.set(p, sizes[p] == 0);
    });
    return new Status(location, reported, empty);
  }

  /**
   * The status of a further attempt of a map; {@code before} and {@code beforeReported} are of its last committed one.
   */
  Status again(long[] sizes, PackedSizes before, PackedSizes beforeReported, String ranOn, Plan plan) {
    if (!useful) {
      return new Status(ranOn, sizes, new BitSet());
    }
    byte[] wrote = before.codes();
    byte[] reported = beforeReported.codes();
    byte[] writes = SizeCode.encode(sizes);
    long[] says = new long[sizes.length];
    BitSet empty = new BitSet();
    BitSet paid = new BitSet();
    for (int p = 0; p < sizes.length; p++) {
      if (wrote[p] == reported[p]) {
        says[p] = sizes[p];
      } else {
        long change = writes[p] == wrote[p] ? 0 : sizes[p] - SizeCode.decode(wrote[p]);
        says[p] = Math.max(sizes[p] > 0 ? 1 : 0, SizeCode.decode(reported[p]) + change);
      }
      paid.set(p, says[p] > 1);
      empty.set(p, sizes[p] == 0 && says[p] > 0);
    }
    return new Status(plan == null || paid.isEmpty() ? ranOn : largestHome(plan, paid, says), says, empty);
  }

  private static String largestHome(Plan plan, BitSet which, long[] bytes) {
    Map<String, Long> sums = new TreeMap<>();
    which.stream().forEach(p -> sums.merge(plan.homes()[p], bytes[p], Long::sum));
    return sums.entrySet().stream().max(Map.Entry.comparingByValue()).orElseThrow().getKey();
  }
}
