package org.gristmill.spark.reader;

/**
 * Numbers in the natural order of keys, as far as 64 bits go: of two keys with different numbers the one with the
 * lesser number is the lesser key.
 */
final class KeyPrefix {
  private static final int CHARACTERS = 8;
  private static final int OTHERS = 255;

  private KeyPrefix() {}

  /** A number for each key; null unless all are strings, or all whole numbers. */
  static long[] of(Object[] keys) {
    return keys[0] instanceof String first ? ofStrings(first, keys) : ofNumbers(keys);
  }

  private static long[] ofNumbers(Object[] keys) {
    long[] prefixes = new long[keys.length];
    for (int i = 0; i < keys.length; i++) {
      if (!(keys[i] instanceof Long) && !(keys[i] instanceof Integer)) {
        return null;
      }
      prefixes[i] = ((Number) keys[i]).longValue();
    }
    return prefixes;
  }

  private static long[] ofStrings(String first, Object[] keys) {
    int common = first.length();
    for (Object key : keys) {
      if (!(key instanceof String string)) {
        return null;
      }
      int at = 0;
      int end = Math.min(common, string.length());
      while (at < end && string.charAt(at) == first.charAt(at)) {
        at++;
      }
      common = at;
    }
    long[] prefixes = new long[keys.length];
    for (int i = 0; i < keys.length; i++) {
      prefixes[i] = ofString((String) keys[i], common);
    }
    return prefixes;
  }

  /** A byte for each of the first characters after the common prefix of all keys, the first one highest. */
  private static long ofString(String key, int common) {
    long prefix = 0;
    for (int i = 0; i < CHARACTERS && common + i < key.length(); i++) {
      int character = key.charAt(common + i);
      prefix |= (long) Math.min(character, OTHERS) << Long.SIZE - Byte.SIZE * (i + 1);

      if (character >= OTHERS) {
        break; // what follows says nothing about two keys of which this character may differ
      }
    }
    return prefix ^ Long.MIN_VALUE; // the highest byte has no sign
  }
}
