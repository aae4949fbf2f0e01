package org.gristmill.core.read;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.gristmill.core.format.PartitionIndex;

/**
 * The segments that a reader may take from a partition: all segments of the winning attempt of every map, each once,
 * and nothing else. Segments of failed, killed, speculative and zombie attempts are left aside; of a segment that was
 * sent twice one copy is taken; a winner with a segment missing is named, so that the caller can raise a fetch failure.
 */
public final class WinningSegments {
  /** The segments to read, in the order of the file, and the map indexes whose winner is incomplete. */
  public record Selection(List<PartitionIndex.Entry> segments, List<Integer> incomplete) {
    public boolean complete() {
      return incomplete.isEmpty();
    }
  }

  private WinningSegments() {}

  /** @param winners map index to the attempt whose segments this partition must hold */
  public static Selection select(PartitionIndex index, Map<Integer, Long> winners) {
    // 1. Of each winner, the segments by sequence; a second copy of one is dropped here.
    Map<Integer, TreeMap<Integer, PartitionIndex.Entry>> found = new HashMap<>();
    for (PartitionIndex.Entry e : index.entries()) {
      Long winner = winners.get(e.mapIndex());
      if (winner != null && winner == e.attempt()) {
        found.computeIfAbsent(e.mapIndex(), k -> new TreeMap<>()).putIfAbsent(e.sequence(), e);
      }
    }
    // 2. A winner is whole if its highest sequence is marked last and none below it is missing.
    List<PartitionIndex.Entry> segments = new ArrayList<>();
    List<Integer> incomplete = new ArrayList<>();
    for (int mapIndex : winners.keySet()) {
      TreeMap<Integer, PartitionIndex.Entry> sequences = found.get(mapIndex);
      if (sequences == null || !sequences.lastEntry().getValue().last() || sequences.size() != sequences.lastKey() + 1) {
        incomplete.add(mapIndex);
      } else {
        segments.addAll(sequences.values());
      }
    }
    // 3. Reading goes through the file from front to back.
    segments.sort(Comparator.comparingLong(PartitionIndex.Entry::offset));
    incomplete.sort(Comparator.naturalOrder());
    return new Selection(segments, incomplete);
  }
}
