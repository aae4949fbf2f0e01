package org.gristmill.core.plan;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Numbers as Spark's settings write them: a whole number, and for sizes and times a unit right behind it. */
final class Quantity {
  private static final Pattern NUMBER_AND_UNIT = Pattern.compile("([0-9]+)([a-z]*)");
  private static final Map<String, Long> BYTES = Map.ofEntries(Map.entry("", 1L), Map.entry("b", 1L), Map.entry("k", 1L << 10),
      Map.entry("kb", 1L << 10), Map.entry("m", 1L << 20), Map.entry("mb", 1L << 20), Map.entry("g", 1L << 30), Map.entry("gb", 1L << 30),
      Map.entry("t", 1L << 40), Map.entry("tb", 1L << 40), Map.entry("p", 1L << 50), Map.entry("pb", 1L << 50));
  private static final Map<String, Long> MILLIS = Map.of("", 1L, "ms", 1L, "s", 1000L, "m", 60_000L, "min", 60_000L, "h", 3_600_000L,
      "d", 86_400_000L);

  private Quantity() {}

  /** @throws IllegalArgumentException whose message says what is expected */
  static long bytes(String text) {
    return parse(text, BYTES, "a size such as 512k, 64m or 2g, or a number of bytes");
  }

  /** @throws IllegalArgumentException whose message says what is expected */
  static long millis(String text) {
    return parse(text, MILLIS, "a time such as 500ms, 10s or 5m, or a number of milliseconds");
  }

  /** @throws IllegalArgumentException whose message says what is expected */
  static long count(String text) {
    return parse(text, Map.of("", 1L), "a whole number");
  }

  private static long parse(String text, Map<String, Long> units, String expected) {
    Matcher matcher = NUMBER_AND_UNIT.matcher(text.strip().toLowerCase(Locale.ROOT));
    try {
      if (matcher.matches() && units.containsKey(matcher.group(2))) {
        return Math.multiplyExact(Long.parseLong(matcher.group(1)), units.get(matcher.group(2)));
      }
    } catch (NumberFormatException | ArithmeticException e) {
      throw new IllegalArgumentException(expected + ", below 2^63", e);
    }
    throw new IllegalArgumentException(expected);
  }
}
