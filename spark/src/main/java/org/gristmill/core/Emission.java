package org.gristmill.core;

import java.util.BitSet;

/**
 * What a map attempt must write: all partitions, or only those that an earlier attempt of the same map has lost; the others
 * it inherits from {@code base}.
 */
public record Emission(boolean all, BitSet partitions, long base) {
  public static final Emission ALL = new Emission(true, new BitSet(), -1);

  public boolean includes(int partition) {
    return all || partitions.get(partition);
  }

  /** True if there is nothing to write, so the map need not even run over its input. */
  public boolean nothing() {
    return !all && partitions.isEmpty();
  }
}
