package org.gristmill.core.plan;

import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/** Everything that can be turned under {@code spark.gristmill.*}, with defaults; the documentation's table is made from it. */
public final class Settings {
  /** One setting. {@code unit} is what the number counts: bytes, ms, share, count, or one of the words allowed. */
  public record Entry(String key, String unit, String defaultValue, String doc) {}

  public static final Entry FALLBACK = new Entry("spark.gristmill.fallback", "true or false", "true",
      "Use Spark's sort shuffle where this one cannot help or cannot be right, and log why. With false, a shuffle that cannot be done right"
          + " fails instead, and one that is only too small is done all the same.");
  public static final Entry BLOCKS_MIN = new Entry("spark.gristmill.fallback.blocksMin", "count", "64",
      "Shuffles with fewer blocks (map tasks times partitions) are too small to gain and use the sort shuffle.");
  public static final Entry POOL_BYTES = new Entry("spark.gristmill.pool.bytes", "bytes", "0",
      "Budget of the page pool of an executor, reserved with Spark's memory manager. 0: a quarter of the memory that Spark"
          + " shares between execution and storage.");
  public static final Entry POOL_PATIENCE = new Entry("spark.gristmill.pool.patienceMs", "ms", "10000",
      "A map task that waits for a page exceeds the budget if no page at all becomes free for this long.");
  public static final Entry THRESHOLD = new Entry("spark.gristmill.pool.threshold", "share", "0.8",
      "When the pool is this full, pages that are not full are sent too, the fullest partition first.");
  public static final Entry PAGE_BYTES = new Entry("spark.gristmill.page.bytes", "bytes", "1048576",
      "A page of a partition is full at this size and leaves as soon as its home is known.");
  public static final Entry SEGMENT_BYTES = new Entry("spark.gristmill.segment.bytes", "bytes", "262144",
      "Serialised bytes that a map task gathers for a partition before it compresses them into a segment.");
  public static final Entry TASK_BYTES = new Entry("spark.gristmill.task.bytes", "bytes", "33554432",
      "Serialised bytes that a map task gathers over all partitions before it compresses the larger ones into segments.");
  public static final Entry PARCEL_BYTES = new Entry("spark.gristmill.parcel.bytes", "bytes", "4194304",
      "Pages for one home travel together up to this size.");
  public static final Entry WINDOW_BYTES = new Entry("spark.gristmill.window.bytes", "bytes", "16777216",
      "Bytes in flight to one home.");
  public static final Entry SEND_TRIES = new Entry("spark.gristmill.send.tries", "count", "5",
      "A page is given up after this many failed deliveries; its maps run again if a reader needs it.");
  public static final Entry SEND_RETRY = new Entry("spark.gristmill.send.retryMs", "ms", "500", "Pause after a failed delivery.");
  public static final Entry APPEND_BYTES = new Entry("spark.gristmill.append.bytes", "bytes", "1048576",
      "A home writes about this much of its partitions at a time.");
  public static final Entry STORE_BYTES = new Entry("spark.gristmill.store.bytes", "bytes", "67108864",
      "Memory of a home for data that it has not written, outside of Spark's memory manager. When half of it is used the home writes, and when"
          + " all of it is used senders wait. Shuffles that fit into half of it are read from memory and never written.");
  public static final Entry READ_BYTES = new Entry("spark.gristmill.read.bytes", "bytes", "458752",
      "A reader takes a partition from its home in pieces of this size.");
  public static final Entry PLAN_SHARE = new Entry("spark.gristmill.plan.share", "share", "0.2",
      "Share of a shuffle's maps (at least 4, fewer if the shuffle has fewer) after which partition sizes are predicted and partitions placed.");
  public static final Entry RECOVERY = new Entry("spark.gristmill.recovery", "recompute, resend or replicate", "recompute",
      "How the partitions of a lost executor are recovered. recompute: maps run again and emit only these. resend: map output is also kept in"
          + " a local file and sent again; only maps that ran on the lost executor run again. replicate: every partition is also sent to a second"
          + " executor, which takes over; no map runs again.");
  public static final Entry REDO = new Entry("spark.gristmill.redo", "keys or strict", "keys",
      "What a map that runs again must write as before, if tasks may already have read its first output. keys: the same keys in each partition; a"
          + " job whose values differ, as sums of doubles do in another order, goes on with a warning. strict: the same records.");
  public static final Entry LOCALITY = new Entry("spark.gristmill.locality", "executor or host", "executor",
      "Map statuses ask for a partition's executor, or only for its host.");
  public static final Entry TIMEOUT = new Entry("spark.gristmill.timeoutMs", "ms", "0",
      "The longest wait for a driver, an executor or a disk that does not answer. After it, the awaited data counts as lost, and is made again"
          + " elsewhere. 0: `spark.network.timeout` (120 s unless it is set).");

  public static final List<Entry> ALL = List.of(FALLBACK, BLOCKS_MIN, POOL_BYTES, POOL_PATIENCE, THRESHOLD, PAGE_BYTES,
      SEGMENT_BYTES, TASK_BYTES, PARCEL_BYTES, WINDOW_BYTES, SEND_TRIES, SEND_RETRY, APPEND_BYTES, STORE_BYTES, READ_BYTES,
      PLAN_SHARE, RECOVERY, REDO, LOCALITY, TIMEOUT);

  private final Function<Entry, String> source;

  /** @param source the value that was set for an entry, or null */
  public Settings(Function<Entry, String> source) {
    this.source = source;
  }

  public String text(Entry entry) {
    String value = source.apply(entry);
    return value == null ? entry.defaultValue : value;
  }

  /** One of the words that the entry's unit lists. */
  public String word(Entry entry) {
    String word = text(entry).trim();
    if (!List.of(entry.unit.split(", | or ")).contains(word)) {
      throw bad(entry, entry.unit);
    }
    return word;
  }

  public boolean flag(Entry entry) {
    return word(entry).equals("true");
  }

  /** A whole number, at least 0; for bytes a suffix k, m or g is understood. */
  public long number(Entry entry) {
    String text = text(entry).trim().toLowerCase(Locale.ROOT);
    try {
      int shift = !entry.unit.equals("bytes") ? 0 : text.endsWith("k") ? 10 : text.endsWith("m") ? 20 : text.endsWith("g") ? 30 : 0;
      long value = Math.multiplyExact(Long.parseLong(shift == 0 ? text : text.substring(0, text.length() - 1)), 1L << shift);
      if (value >= 0) {
        return value;
      }
    } catch (NumberFormatException | ArithmeticException e) {
      throw bad(entry, "a whole number");
    }
    throw bad(entry, "a number that is not negative");
  }

  public int size(Entry entry) {
    long value = number(entry);
    if (value > 1 << 30) {
      throw bad(entry, "at most 1g");
    }
    return (int) value;
  }

  /** A number from 0 to 1. */
  public double share(Entry entry) {
    try {
      double value = Double.parseDouble(text(entry));
      if (value >= 0 && value <= 1) {
        return value;
      }
    } catch (NumberFormatException e) {
      throw bad(entry, "a number from 0 to 1");
    }
    throw bad(entry, "a number from 0 to 1");
  }

  /** The table of the documentation, in Markdown. */
  public static String table() {
    StringBuilder table = new StringBuilder("| setting | unit | default | meaning |\n| --- | --- | --- | --- |\n");
    for (Entry e : ALL) {
      table.append("| `").append(e.key).append("` | ").append(e.unit).append(" | `").append(e.defaultValue).append("` | ")
          .append(e.doc).append(" |\n");
    }
    return table.toString();
  }

  private IllegalArgumentException bad(Entry entry, String wanted) {
    return new IllegalArgumentException(entry.key + " is '" + text(entry) + "'; it must be " + wanted);
  }
}
