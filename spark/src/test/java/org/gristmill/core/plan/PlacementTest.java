package org.gristmill.core.plan;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PlacementTest {
  @Test
  void theLargestGoesFirstToTheLeastLoaded() {
    assertArrayEquals(new int[] {1, 0, 1, 1}, Placement.longestFirst(new long[] {4, 9, 3, 1}, new double[] {1, 1}));
  }

  /** The paper's pseudo-code stops at len - 1. */
  @Test
  void theSmallestPartitionIsPlacedToo() {
    int[] home = Placement.longestFirst(new long[] {5, 5, 1}, new double[] {1, 1, 1});
    assertEquals(3, Arrays.stream(home).distinct().count());
  }

  @Test
  void aNodeOfTwiceTheSpeedGetsTwiceTheBytes() {
    long[] sizes = new long[300];
    Arrays.fill(sizes, 10);
    int[] home = Placement.longestFirst(sizes, new double[] {2, 1});
    assertEquals(200, Arrays.stream(home).filter(n -> n == 0).count());
  }

  /**
   * Longest first is never worse than 4/3 - 1/(3m) of the best (Graham), and the best is at least the mean and the
   * largest.
   */
  @Test
  void theFullestNodeStaysWithinGrahamsBound() {
    for (int seed = 0; seed < 200; seed++) {
      Random random = new Random(seed);
      int nodes = 2 + random.nextInt(6);
      long[] sizes = random.longs(20 + random.nextInt(50), 1, 1000).toArray();
      int[] home = Placement.longestFirst(sizes, Placement.alike(nodes));
      long total = Arrays.stream(sizes).sum();
      double fullest = Placement.imbalance(home, sizes, nodes) * total / nodes;
      double best = Math.max((double) total / nodes, Arrays.stream(sizes).max().orElseThrow());
      assertTrue(fullest <= (4.0 / 3) * best + 1000, "seed " + seed);
    }
  }

  @Test
  void replicasAreElsewhereAndBalanceWithTheHomes() {
    long[] sizes = {9, 5, 4, 3, 2, 1};
    int[] home = Placement.longestFirst(sizes, Placement.alike(3));
    int[] second = Placement.secondHomes(home, sizes, 3);
    long[] load = new long[3];
    for (int p = 0; p < sizes.length; p++) {
      assertTrue(second[p] != home[p]);
      load[home[p]] += sizes[p];
      load[second[p]] += sizes[p];
    }
    assertTrue(Arrays.stream(load).max().orElseThrow() <= 20, Arrays.toString(load));
  }

  /** Zipf sizes, none above a node's share: within a tenth of the mean, where round robin is far off. */
  @Test
  void skewedPartitionsAreBalancedWithinATenth() {
    long[] sizes = new long[64];
    for (int p = 0; p < sizes.length; p++) {
      sizes[p] = (long) (1e9 / (p + 1));
    }
    double ours = Placement.imbalance(Placement.longestFirst(sizes, Placement.alike(4)), sizes, 4);
    double roundRobin = Placement.imbalance(Placement.roundRobin(64, 4), sizes, 4);
    assertTrue(ours <= 1.1, "longest first " + ours);
    assertTrue(roundRobin > 1.2, "round robin " + roundRobin);
  }

  @Test
  void rangesGiveEachNodeAsManyNeighbours() {
    assertArrayEquals(new int[] {0, 0, 0, 1, 1, 2, 2}, Placement.ranges(7, 3));
    assertArrayEquals(new int[] {0, 1}, Placement.ranges(2, 3));
  }

  @Test
  void theFullestNodeIsTheOneThatTakesLongest() {
    assertEquals(12, Placement.fullest(new int[] {0, 0, 1}, new long[] {10, 10, 6}, new double[] {2, 0.5}));
  }

  @Test
  void aLineIsFoundThroughItsSamples() {
    SizeModel model = new SizeModel(2);
    for (int x = 1; x <= 5; x++) {
      model.add(x, new long[] {100L * x + 7, 3L * x});
    }
    assertEquals(1, model.fit(), 1e-9);
    assertArrayEquals(new long[] {1007, 30}, model.predict(10));
  }

  @Test
  void sizesAreNotPredictedFromOneSampleOrFromNoise() {
    SizeModel one = new SizeModel(1);
    one.add(1, new long[] {100});
    assertNull(one.predict(10));
    SizeModel noise = new SizeModel(1);
    int samples = 0;
    for (long y : new long[] {5, 900, 3, 850, 10, 3, 700, 1}) {
      noise.add(samples++, new long[] {y});
    }
    assertNull(noise.predict(10));
  }

  @Test
  void aShrinkingLineNeverPredictsLessThanNothing() {
    SizeModel model = new SizeModel(1);
    model.add(1, new long[] {100});
    model.add(2, new long[] {50});
    assertArrayEquals(new long[] {0}, model.predict(10));
  }
}
