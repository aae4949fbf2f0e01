package org.gristmill.spark.reader;

import java.util.Arrays;
import java.util.Comparator;

/**
 * Puts keys in order by numbering them. The keys do not move, so nothing that the garbage collector must know of is
 * written.
 * <ol>
 * <li>A guess: strings and whole numbers are in their natural order, or in the opposite one. So they are sorted by the
 *     first bits by which they differ ({@link KeyPrefix}), which lie in one array, each followed by its number. Where
 *     these bits are equal, the comparator decides.
 * <li>The comparator is asked whether that was right, once for each two neighbours that the bits alone have put in
 *     order.
 * <li>If there are no such bits, or the comparator says no: a stable merge sort of the numbers, by the comparator.
 * </ol>
 * Either way equal keys stay in their order. A comparison reads two keys from anywhere in memory; to ask for one for
 * each key and not for twenty halves a reduce task's work.
 *
 * <p>The merge sort is not the JDK's, because other code uses that with other arrays and orders. The JIT compiler's
 * assumptions did not hold, and it compiled the methods five times in an executor with 256 reduce tasks.
 */
final class KeyOrder<K> {
  private static final int GUESSED_MIN = 32;
  private static final int INSERTION_MAX = 6;

  private final Object[] keys;
  private final Comparator<K> order;
  private final int[] numbers;
  private final int[] left;

  private KeyOrder(Object[] keys, Comparator<K> order) {
    this.keys = keys;
    this.order = order;
    numbers = new int[keys.length];
    left = new int[(keys.length + 1) / 2];
  }

  /** The places of the keys, those of the least first; equal keys stay in their order. */
  static <K> int[] of(Object[] keys, Comparator<K> order) {
    KeyOrder<K> sort = new KeyOrder<>(keys, order);
    if (!sort.guess()) {
      for (int i = 0; i < keys.length; i++) {
        sort.numbers[i] = i;
      }
      sort.sort(0, keys.length);
    }
    return sort.numbers;
  }

  private boolean guess() {
    long[] prefixes = keys.length < GUESSED_MIN ? null : KeyPrefix.of(keys);
    if (prefixes == null) {
      return false;
    }
    // 1. From the least to the greatest, or the other way round?
    int least = 0;
    int greatest = 0;
    for (int i = 1; i < prefixes.length; i++) {
      least = prefixes[i] < prefixes[least] ? i : least;
      greatest = prefixes[i] > prefixes[greatest] ? i : greatest;
    }
    long range = prefixes[greatest] - prefixes[least]; // without a sign
    int direction = range == 0 ? 0 : order.compare(key(least), key(greatest));
    if (direction == 0) {
      return false;
    }
    // 2. The distance from the first, as many bits of it as the number leaves.
    long first = prefixes[direction < 0 ? least : greatest];
    int numberBits = Integer.SIZE - Integer.numberOfLeadingZeros(keys.length - 1);
    int lost = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(range) + numberBits - (Long.SIZE - 1));
    for (int i = 0; i < prefixes.length; i++) {
      long distance = direction < 0 ? prefixes[i] - first : first - prefixes[i];
      prefixes[i] = distance >>> lost << numberBits | i;
    }
    Arrays.sort(prefixes);
    for (int i = 0; i < prefixes.length; i++) {
      numbers[i] = (int) prefixes[i] & (1 << numberBits) - 1;
    }
    // 3. The comparator decides where the bits are equal, and checks the rest.
    for (int start = 0, end; start < prefixes.length; start = end) {
      end = start + 1;
      while (end < prefixes.length && prefixes[end] >>> numberBits == prefixes[start] >>> numberBits) {
        end++;
      }
      sort(start, end);
      if (start > 0 && !inOrder(numbers[start - 1], numbers[start])) {
        return false;
      }
    }
    return true;
  }

  private boolean inOrder(int a, int b) {
    int compared = order.compare(key(a), key(b));
    return compared < 0 || compared == 0 && a < b;
  }

  private void sort(int start, int end) {
    if (end - start <= INSERTION_MAX) {
      insert(start, end);
      return;
    }
    int middle = start + end >>> 1;
    sort(start, middle);
    sort(middle, end);
    if (after(key(numbers[middle - 1]), key(numbers[middle]))) {
      merge(start, middle, end);
    }
  }

  private void insert(int start, int end) {
    for (int i = start + 1; i < end; i++) {
      int number = numbers[i];
      K key = key(number);
      int at = i;
      for (; at > start && after(key(numbers[at - 1]), key); at--) {
        numbers[at] = numbers[at - 1];
      }
      numbers[at] = number;
    }
  }

  private void merge(int start, int middle, int end) {
    int lefts = middle - start;
    System.arraycopy(numbers, start, left, 0, lefts);
    int l = 0;
    int r = middle;
    int to = start;
    K leftKey = key(left[0]);
    K rightKey = key(numbers[middle]);
    while (true) {
      if (after(leftKey, rightKey)) {
        numbers[to++] = numbers[r++];
        if (r == end) {
          System.arraycopy(left, l, numbers, to, lefts - l);
          return;
        }
        rightKey = key(numbers[r]);
      } else {
        numbers[to++] = left[l++];
        if (l == lefts) {
          return; // the rest of the right half is in its place already
        }
        leftKey = key(left[l]);
      }
    }
  }

  private boolean after(K a, K b) {
    return order.compare(a, b) > 0;
  }

  @SuppressWarnings("unchecked") // the keys are those that the order was made for
  private K key(int number) {
    return (K) keys[number];
  }
}
