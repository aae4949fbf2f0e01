package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Comparator;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class KeyOrderTest {
  private static int[] expected(Integer[] keys) {
    return IntStream.range(0, keys.length).boxed().sorted(Comparator.comparing(i -> keys[i])).mapToInt(i -> i).toArray();
  }

  /** Few different keys, so that an order that is not stable shows. */
  @Test
  void keysOfAnyNumberAreInTheirStableOrder() {
    Random random = new Random(11);
    for (int count = 0; count < 300; count++) {
      Integer[] keys = random.ints(count, 0, 1 + count / 3).boxed().toArray(Integer[]::new);
      assertArrayEquals(expected(keys), KeyOrder.of(keys, Comparator.<Integer>naturalOrder()));
    }
  }

  @Test
  void whatIsInOrderIsComparedHardlyMoreThanOnce() {
    Integer[] keys = IntStream.range(0, 10_000).boxed().toArray(Integer[]::new);
    int[] compared = new int[1];
    int[] places = KeyOrder.of(keys, (Integer a, Integer b) -> {
      compared[0]++;
      return a.compareTo(b);
    });
    assertArrayEquals(IntStream.range(0, 10_000).toArray(), places);
    assertTrue(compared[0] < 10_000, compared[0] + " comparisons");
  }

  @Test
  void whatIsInTheOppositeOrderIsTurnedRound() {
    Integer[] keys = IntStream.range(0, 1001).map(i -> -i).boxed().toArray(Integer[]::new);
    assertArrayEquals(IntStream.range(0, 1001).map(i -> 1000 - i).toArray(), KeyOrder.of(keys, Comparator.<Integer>naturalOrder()));
  }
}
