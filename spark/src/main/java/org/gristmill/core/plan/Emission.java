package org.gristmill.core.plan;

import java.util.BitSet;

/**
 * What a map attempt must write: all partitions, or only those that an earlier attempt of the same map has lost; the
 * others it inherits from {@code base}, or no attempt has them.
 */
public record Emission(boolean all, BitSet partitions, long base) {
  /** Instead of an attempt, where there is none. */
  public static final long NOBODY = -1;

  public static final Emission ALL = new Emission(true, new BitSet(), NOBODY);

  /** All partitions except {@code empty}, for which the attempt had nothing. */
  public static Emission without(BitSet empty, int partitions) {
    BitSet written = (BitSet) empty.clone();
    written.flip(0, partitions);
    return new Emission(false, written, NOBODY);
  }

  /** Without partitions for which the attempt had nothing, so that readers look for them where it inherits from. */
  public Emission except(BitSet empty) {
    if (!partitions.intersects(empty)) {
      return this;
    }
    BitSet written = (BitSet) partitions.clone();
    written.andNot(empty);
    return new Emission(all, written, base);
  }

  public boolean includes(int partition) {
    return all || partitions.get(partition);
  }

  /** True if there is nothing to write, so the map need not even run over its input. */
  public boolean nothing() {
    return !all && partitions.isEmpty();
  }
}
