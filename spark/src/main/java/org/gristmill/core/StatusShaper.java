package org.gristmill.core;

import java.util.Map;
import java.util.TreeMap;

/**
 * Local fetch without a patch. Spark prefers to run a reduce task where the map statuses say that at least a fifth of its
 * input lies. A map status has one location, but a partition's data of all maps is at its home; so each status is given one
 * home as location, and reports there, for the partitions of that home, also what earlier statuses left unreported.
 *
 * <ol>
 * <li>Every map adds its sizes to the debt of each partition.
 * <li>The status goes to the home whose partitions have the largest debt, and pays it: the size reported for these is their
 *     whole debt. Other non-empty partitions report 1 byte, empty ones 0 (readers rely on that).
 * <li>The last map pays all debts, so that the totals, which adaptive execution reads, are right.
 * </ol>
 *
 * At 1000 maps or partitions and above Spark does not look at locations, and statuses are left as they are.
 */
final class StatusShaper {
  private static final int LOCALITY_MAX = 1000;

  /** Location (an executor) and sizes for a map status. */
  record Status(String location, long[] sizes) {}

  private final boolean useful;
  private final long[] debt;

  StatusShaper(int maps, int partitions) {
    useful = maps < LOCALITY_MAX && partitions < LOCALITY_MAX;
    debt = new long[partitions];
  }

  /**
   * @param first false for a further attempt of a map that has reported before: it neither adds nor pays
   * @param last true if no map will report after this one
   */
  Status shape(long[] sizes, String ranOn, Plan plan, boolean first, boolean last) {
    if (!useful || !first) {
      return new Status(ranOn, sizes);
    }
    for (int p = 0; p < debt.length; p++) {
      debt[p] += sizes[p];
    }
    String location = plan == null ? ranOn : mostIndebted(plan);
    long[] reported = new long[sizes.length];
    for (int p = 0; p < debt.length; p++) {
      if (sizes[p] > 0) {
        boolean pays = last || plan != null && plan.homes()[p].equals(location);
        reported[p] = pays ? debt[p] : 1;
        debt[p] -= reported[p];
      }
    }
    return new Status(location, reported);
  }

  private String mostIndebted(Plan plan) {
    Map<String, Long> debts = new TreeMap<>();
    for (int p = 0; p < debt.length; p++) {
      debts.merge(plan.homes()[p], debt[p], Long::sum);
    }
    return debts.entrySet().stream().max(Map.Entry.comparingByValue()).orElseThrow().getKey();
  }
}
