package org.gristmill.core.read;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.gristmill.core.format.PartitionIndex;
import org.junit.jupiter.api.Test;

class WinningSegmentsTest {
  @Test
  void onlyTheWinnersSegmentsAreTakenAndEachOnce() {
    PartitionIndex index = index(entry(0, 10, 0, true), entry(0, 11, 0, true), entry(1, 12, 1, true), entry(1, 12, 0, false),
        entry(1, 12, 0, false));
    WinningSegments.Selection selection = WinningSegments.select(index, Map.of(0, 11L, 1, 12L));
    assertEquals(List.of(), selection.incomplete());
    assertEquals(List.of(1L, 2L, 3L), selection.segments().stream().map(PartitionIndex.Entry::offset).toList());
  }

  @Test
  void aMissingFirstMiddleOrLastSegmentMakesItsMapIncomplete() {
    assertEquals(List.of(0), WinningSegments.select(index(entry(0, 1, 1, true)), Map.of(0, 1L)).incomplete());
    assertEquals(List.of(0), WinningSegments.select(index(entry(0, 1, 0, false), entry(0, 1, 2, true)), Map.of(0, 1L)).incomplete());
    assertEquals(List.of(0), WinningSegments.select(index(entry(0, 1, 0, false)), Map.of(0, 1L)).incomplete());
    assertEquals(List.of(0), WinningSegments.select(index(), Map.of(0, 1L)).incomplete());
  }

  @Test
  void aMapWithoutAWinnerGivesNothing() {
    assertEquals(List.of(), WinningSegments.select(index(entry(4, 1, 0, true)), Map.of()).segments());
  }

  /**
   * Attempts, duplicates and losses at random: what is taken is each winner's sequence 0..n exactly once, or it is
   * named.
   */
  @Test
  void anyMixOfAttemptsDuplicatesAndLossesIsJudgedRight() {
    for (int seed = 0; seed < 500; seed++) {
      Random random = new Random(seed);
      List<PartitionIndex.Entry> entries = new ArrayList<>();
      Map<Integer, Long> winners = new TreeMap<>();
      Set<Integer> broken = new HashSet<>();
      int expected = 0;
      for (int map = 0; map < 6; map++) {
        long winner = map * 10L + random.nextInt(3);
        winners.put(map, winner);
        for (long attempt = map * 10L; attempt < map * 10 + 3; attempt++) {
          int segments = 1 + random.nextInt(4);
          int lost = random.nextInt(8); // now and then one of the segments
          for (int s = 0; s < segments; s++) {
            for (int copy = s == lost ? 0 : 1 + random.nextInt(2); copy > 0; copy--) {
              entries.add(entry(map, attempt, s, s == segments - 1));
            }
          }
          if (attempt == winner && lost < segments) {
            broken.add(map);
          } else if (attempt == winner) {
            expected += segments;
          }
        }
      }
      Collections.shuffle(entries, random);
      WinningSegments.Selection selection = WinningSegments.select(index(entries.toArray(PartitionIndex.Entry[]::new)), winners);
      assertEquals(broken, new HashSet<>(selection.incomplete()), "seed " + seed);
      assertEquals(expected, selection.segments().size(), "seed " + seed);
      assertEquals(expected, selection.segments().stream().map(e -> List.of(e.mapIndex(), e.sequence())).distinct().count());
    }
  }

  private static PartitionIndex.Entry entry(int map, long attempt, int sequence, boolean last) {
    return new PartitionIndex.Entry(map, attempt, sequence, last, 1, -1, 50);
  }

  /** Offsets count up from 0. */
  private static PartitionIndex index(PartitionIndex.Entry... entries) {
    List<PartitionIndex.Entry> placed = new ArrayList<>();
    for (PartitionIndex.Entry e : entries) {
      placed.add(new PartitionIndex.Entry(e.mapIndex(), e.attempt(), e.sequence(), e.last(), 1, placed.size(), 1));
    }
    return new PartitionIndex(placed);
  }
}
