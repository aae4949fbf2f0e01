package org.gristmill.core.plan;

import java.util.Map;

/**
 * The attempts that wrote only part of what their map status reports, for readers to find the attempts that wrote the
 * rest. A shuffle's lineage gets a new version whenever it grows; no other lineage of the application has that.
 */
public record Lineage(long version, Map<Long, Emission> partial) {
  /** Every attempt wrote all that its map status reports. */
  public static final Lineage NONE = new Lineage(0, Map.of());

  /**
   * The attempt that wrote the segments of {@code partition} which stand for the winner's; {@link Emission#NOBODY} if
   * it has none.
   */
  public long writer(long winner, int partition) {
    long attempt = winner;
    for (Emission e = partial.get(attempt); e != null && !e.includes(partition); e = partial.get(attempt)) {
      attempt = e.base();
    }
    return attempt;
  }
}
