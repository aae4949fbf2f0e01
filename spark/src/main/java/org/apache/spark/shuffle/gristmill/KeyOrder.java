package org.apache.spark.shuffle.gristmill;

import java.util.Comparator;

/**
 * Puts keys in order by numbering them: a stable merge sort of the numbers. The keys do not move, so nothing that the garbage
 * collector must know of is written, and a comparison reads two keys, not two records and then their keys. It is not the JDK's sort
 * also because everybody uses that: what the JIT compiler has learnt of other callers' arrays and orders does not hold here, and it
 * compiled the methods five times over in an executor with 256 reduce tasks.
 */
final class KeyOrder<K> {
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
    for (int i = 0; i < keys.length; i++) {
      sort.numbers[i] = i;
    }
    sort.sort(0, keys.length);
    return sort.numbers;
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
          return; // what is left of the right half lies where it belongs
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
