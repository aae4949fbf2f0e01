package org.gristmill.core.driver;

import java.util.BitSet;
import java.util.Map;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;

/** A map attempt: what it had to emit, what it has written, and what of that is lost. */
final class Attempt {
  static final BitSet NOTHING = new BitSet();

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

  boolean isWhole() {
    return !lostAll && lost.isEmpty();
  }

  /** @param shared the sets of partitions that other attempts have lost at the same time */
  void lose(BitSet gone, Map<BitSet, BitSet> shared) {
    BitSet all = (BitSet) gone.clone();
    all.or(lost);
    lost = shared.computeIfAbsent(all, set -> set);
  }
}
