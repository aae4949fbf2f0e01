package org.gristmill.core.driver;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * The partitions of a shuffle that executors on their way out are sending to new homes. Until an executor has reported
 * that all have arrived, its death loses them.
 */
final class HandOvers {
  /** @param epoch of the plan that gave the last of these partitions a new home */
  private record HandOver(int epoch, BitSet partitions) {}

  private final Map<String, HandOver> unfinished = new HashMap<>();

  /** An executor starts to hand over these partitions, beside those that it is at already. */
  void begin(String executor, int epoch, BitSet partitions) {
    HandOver before = unfinished.get(executor);
    BitSet all = (BitSet) partitions.clone();
    if (before != null) {
      all.or(before.partitions);
    }
    unfinished.put(executor, new HandOver(epoch, all));
  }

  /** Everything has arrived that an executor had to hand over by the plan of {@code epoch}. */
  void finished(String executor, int epoch) {
    unfinished.computeIfPresent(executor, (id, handOver) -> handOver.epoch <= epoch ? null : handOver);
  }

  /** The executor is gone or cannot read its store. Returns the partitions that it has not handed over. */
  BitSet failed(String executor) {
    HandOver handOver = unfinished.remove(executor);
    return handOver == null ? new BitSet() : handOver.partitions;
  }

  /** These partitions are lost; what is still sent of them is of no use. */
  void lost(BitSet partitions) {
    unfinished.values().forEach(handOver -> handOver.partitions.andNot(partitions));
  }
}
