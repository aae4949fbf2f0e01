package org.gristmill.spark.reader;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Comparator;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class KeyOrderTest {
  private static <K> int[] expected(K[] keys, Comparator<K> order) {
    return IntStream.range(0, keys.length).boxed().sorted((a, b) -> order.compare(keys[a], keys[b])).mapToInt(i -> i).toArray();
  }

  private static <K> void sorts(K[] keys, Comparator<K> order) {
    assertArrayEquals(expected(keys, order), KeyOrder.of(keys, order));
    assertArrayEquals(expected(keys, order.reversed()), KeyOrder.of(keys, order.reversed()));
  }

  /** Few different keys, so that an order that is not stable shows. */
  @Test
  void keysOfAnyNumberAreInTheirStableOrder() {
    Random random = new Random(11);
    for (int count = 0; count < 300; count++) {
      Integer[] keys = random.ints(count, 0, 1 + count / 3).boxed().toArray(Integer[]::new);
      sorts(keys, Comparator.naturalOrder());
    }
  }

  @Test
  void numbersOfAnySizeAreInOrder() {
    Random random = new Random(12);
    for (int bits = 0; bits < Long.SIZE; bits++) {
      int shift = bits;
      sorts(random.longs(500).map(number -> number >> shift).boxed().toArray(Long[]::new), Comparator.naturalOrder());
    }
    sorts(new Random(13).ints(500).boxed().toArray(Integer[]::new), Comparator.naturalOrder());
  }

  /**
   * Beginnings in common, ends that are prefixes of others, and characters of one byte, of two, and of the last value
   * of one.
   */
  @Test
  void stringsAreInOrderWhateverTheirCharacters() {
    Random random = new Random(14);
    String[] characters = {"\0ab", "abc", "a\u00fe\u00ff", "a\u00ff\u0100\u3042", "\ud83d\ude00z"};
    for (String some : characters) {
      for (String start : new String[] {"", "https://example.org/", "\u3042"}) {
        String[] keys = IntStream.range(0, 700).mapToObj(i -> random.ints(random.nextInt(14), 0, some.length())
            .mapToObj(at -> some.substring(at, at + 1)).collect(Collectors.joining("", start, ""))).toArray(String[]::new);
        sorts(keys, Comparator.naturalOrder());
      }
    }
  }

  /** Here the guess is wrong, at once or late, or right but for the order of equal keys. */
  @Test
  void anOrderThatIsNotTheNaturalOneIsKept() {
    Random random = new Random(15);
    String[] words = IntStream.range(0, 1000).mapToObj(i -> random.ints(4, 0, 6).mapToObj(at -> "aAbBcC".substring(at, at + 1))
        .collect(Collectors.joining())).toArray(String[]::new);
    sorts(words, String.CASE_INSENSITIVE_ORDER);
    sorts(words, Comparator.comparing(word -> new StringBuilder(word).reverse().toString()));
    sorts(words, Comparator.comparing(String::length));
    Integer[] numbers = random.ints(1000, -500, 500).boxed().toArray(Integer[]::new);
    sorts(numbers, Comparator.comparing(Math::abs));
    sorts(numbers, Comparator.comparing(number -> number / 10));
    sorts(numbers, Comparator.comparing(number -> number == 17 ? 400 : number));
  }

  @Test
  void keysOfSeveralClassesAreLeftToTheComparator() {
    Object[] keys = IntStream.range(0, 100).mapToObj(i -> i % 3 == 0 ? (Object) ("" + i) : i % 3 == 1 ? (Object) i : (Object) (0.5 * i)).toArray();
    sorts(keys, Comparator.comparing(Object::toString));
    Object[] strings = IntStream.range(0, 100).mapToObj(i -> i == 70 ? (Object) i : (Object) ("" + i)).toArray();
    sorts(strings, Comparator.comparing(Object::toString));
  }

  @Test
  void sortedKeysAreComparedLittleMoreThanOnce() {
    Integer[] keys = IntStream.range(0, 10_000).boxed().toArray(Integer[]::new);
    int[] compared = new int[1];
    int[] places = KeyOrder.of(keys, (Integer a, Integer b) -> {
      compared[0]++;
      return a.compareTo(b);
    });
    assertArrayEquals(IntStream.range(0, 10_000).toArray(), places);
    assertTrue(compared[0] <= 10_000, compared[0] + " comparisons");
  }

  @Test
  void keysInDescendingOrderAreReversed() {
    Integer[] keys = IntStream.range(0, 1001).map(i -> -i).boxed().toArray(Integer[]::new);
    assertArrayEquals(IntStream.range(0, 1001).map(i -> 1000 - i).toArray(), KeyOrder.of(keys, Comparator.<Integer>naturalOrder()));
  }
}
