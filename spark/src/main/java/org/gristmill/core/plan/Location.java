package org.gristmill.core.plan;

import java.util.List;

/**
 * The homes and the lineage that a reader of partitions [start, end) needs. The lineage is null on its way to one that
 * has it.
 */
public record Location(int epoch, List<Executor> homes, Lineage lineage) {
  public Location with(Lineage other) {
    return new Location(epoch, homes, other);
  }
}
