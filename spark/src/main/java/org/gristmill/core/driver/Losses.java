package org.gristmill.core.driver;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * The losses of one shuffle that the log has not named yet. They are logged together, in one line, when a task next
 * uses the shuffle: most shuffles of a long session are never used again, and nobody misses what they lose.
 */
final class Losses {
  private static final int REASONS_MAX = 3;

  private final Map<String, String> reasons = new LinkedHashMap<>(); // the first one of each home
  private final Set<Integer> maps = new TreeSet<>();
  private final BitSet partitions = new BitSet();
  private final BitSet refill = new BitSet();

  /**
   * @param maps whose output is not whole any more
   * @param partitions that were at this home
   * @param refill those of them that are sent again
   */
  void add(String home, String reason, Set<Integer> maps, BitSet partitions, BitSet refill) {
    reasons.putIfAbsent(home, reason);
    this.maps.addAll(maps);
    this.partitions.or(partitions);
    this.refill.or(refill);
  }

  boolean isEmpty() {
    return reasons.isEmpty();
  }

  /** Returns a line on all losses since the last call, and how they come back. */
  String take() {
    StringBuilder line = new StringBuilder();
    reasons.values().stream().limit(REASONS_MAX).forEach(reason -> line.append(line.length() > 0 ? "; " : "").append(reason));
    if (reasons.size() > REASONS_MAX) {
      line.append("; and ").append(reasons.size() - REASONS_MAX).append(" more");
    }
    line.append(partitions.isEmpty() ? ". " : " (" + partitions.cardinality() + " partitions). ");
    if (!refill.isEmpty()) {
      line.append(refill.cardinality()).append(" partitions are sent again by the executors that wrote them. ");
    }
    line.append(maps.isEmpty() ? "No map runs again" : maps.size() + " maps run again and write what is missing");
    reasons.clear();
    maps.clear();
    partitions.clear();
    refill.clear();
    return line.toString();
  }
}
