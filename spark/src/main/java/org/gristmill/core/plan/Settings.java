package org.gristmill.core.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Everything that can be turned under {@code spark.gristmill.*}, with defaults and limits; the documentation's table is
 * made from it, by a test. Sizes and times are written as Spark's are ({@link Quantity}).
 */
public final class Settings {
  /** The prefix of the names of all settings. */
  public static final String PREFIX = "spark.gristmill.";
  private static final String TIME_MAX = "1000d"; // ten times this in nanoseconds is a number
  private static final Set<String> NUMBERS = Set.of("bytes", "ms", "count", "share");

  /**
   * One setting. {@code unit} is what a plain number counts: bytes, ms, share, count; or the words allowed.
   * {@code least} and {@code most} are null for words, and {@code most} where there is no limit; 0 is allowed all the
   * same where it is the default. {@code former} is another name that is still read, or null.
   */
  public record Entry(String key, String unit, String defaultValue, String doc, String least, String most, String former) {
    Entry(String key, String unit, String defaultValue, String doc) {
      this(key, unit, defaultValue, doc, NUMBERS.contains(unit) ? "0" : null, unit.equals("share") ? "1" : unit.equals("ms") ? TIME_MAX : null, null);
    }

    Entry from(String smallest) {
      return new Entry(key, unit, defaultValue, doc, smallest, most, former);
    }

    Entry to(String largest) {
      return new Entry(key, unit, defaultValue, doc, least, largest, former);
    }

    Entry formerly(String name) {
      return new Entry(key, unit, defaultValue, doc, least, most, name);
    }
  }

  public static final Entry FALLBACK = new Entry("spark.gristmill.fallback", "true or false", "true",
      "Use Spark's sort shuffle where this one cannot help or cannot be right, and log why. With false, a shuffle that cannot be done right"
          + " fails instead, and one that is only too small is done all the same.");
  public static final Entry BLOCKS_MIN = new Entry("spark.gristmill.fallback.blocksMin", "count", "64",
      "Shuffles with fewer blocks (map tasks times partitions) are too small to gain and use the sort shuffle.");
  public static final Entry POOL_BYTES = new Entry("spark.gristmill.pool.bytes", "bytes", "0",
      "Budget of the page pool of an executor, reserved with Spark's memory manager. 0: a quarter of the memory that Spark"
          + " shares between execution and storage. Any other value must be at least `spark.gristmill.page.bytes`.");
  public static final Entry POOL_PATIENCE = new Entry("spark.gristmill.pool.patience", "ms", "10s",
      "A map task that waits for a page exceeds the budget if no page at all becomes free for this long.").from("1ms")
      .formerly("spark.gristmill.pool.patienceMs");
  public static final Entry THRESHOLD = new Entry("spark.gristmill.pool.threshold", "share", "0.8",
      "When the pool is this full, pages that are not full are sent too, the fullest partition first.");
  public static final Entry PAGE_BYTES = new Entry("spark.gristmill.page.bytes", "bytes", "1m",
      "A page of a partition is full at this size and leaves as soon as its home is known.").from("1k").to("1g");
  public static final Entry SEGMENT_BYTES = new Entry("spark.gristmill.segment.bytes", "bytes", "256k",
      "Serialised bytes that a map task gathers for a partition before it compresses them into a segment.").from("1k").to("1g");
  public static final Entry TASK_BYTES = new Entry("spark.gristmill.task.bytes", "bytes", "32m",
      "Serialised bytes that a map task gathers over all partitions before it compresses the larger ones into segments.").from("1k").to("1g");
  public static final Entry PARCEL_BYTES = new Entry("spark.gristmill.parcel.bytes", "bytes", "4m",
      "Pages for one home travel together up to this size.").from("1k").to("1g");
  public static final Entry WINDOW_BYTES = new Entry("spark.gristmill.window.bytes", "bytes", "16m",
      "Bytes in flight to one home.").from("1k");
  public static final Entry SEND_TRIES = new Entry("spark.gristmill.send.tries", "count", "5",
      "A page is given up after this many failed deliveries; its maps run again if a reader needs it.").from("1").to("1000");
  public static final Entry SEND_RETRY = new Entry("spark.gristmill.send.retry", "ms", "500ms", "Pause after a failed delivery.")
      .formerly("spark.gristmill.send.retryMs");
  public static final Entry APPEND_BYTES = new Entry("spark.gristmill.append.bytes", "bytes", "1m",
      "A home writes about this much of its partitions at a time.").from("1k").to("1g");
  public static final Entry STORE_BYTES = new Entry("spark.gristmill.store.bytes", "bytes", "64m",
      "Memory of a home for data that it has not written, outside of Spark's memory manager. When half of it is used the home writes, and when"
          + " all of it is used senders wait. Shuffles that fit into half of it are read from memory and never written. With 0,"
          + " everything is written at once.");
  public static final Entry READ_BYTES = new Entry("spark.gristmill.read.bytes", "bytes", "448k",
      "A reader takes a partition from its home in pieces of this size.").from("1k").to("1g");
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
  public static final Entry TIMEOUT = new Entry("spark.gristmill.timeout", "ms", "0",
      "The longest wait for a driver, an executor or a disk that does not answer. After it, the awaited data counts as lost, and is made again"
          + " elsewhere. 0: `spark.network.timeout` (120 s unless it is set).")
      .from("1s").formerly("spark.gristmill.timeoutMs");

  public static final List<Entry> ALL = List.of(FALLBACK, BLOCKS_MIN, POOL_BYTES, POOL_PATIENCE, THRESHOLD, PAGE_BYTES,
      SEGMENT_BYTES, TASK_BYTES, PARCEL_BYTES, WINDOW_BYTES, SEND_TRIES, SEND_RETRY, APPEND_BYTES, STORE_BYTES, READ_BYTES,
      PLAN_SHARE, RECOVERY, REDO, LOCALITY, TIMEOUT);

  private final UnaryOperator<String> source;

  /** @param source the value that was set under a name, or null */
  public Settings(UnaryOperator<String> source) {
    this.source = source;
  }

  public String text(Entry entry) {
    String value = set(entry);
    return value == null ? entry.defaultValue : value;
  }

  private String set(Entry entry) {
    String value = source.apply(entry.key);
    return value != null || entry.former == null ? value : source.apply(entry.former);
  }

  /**
   * Reads every setting, so that a value that cannot be ends the application at its start; one exception names all of
   * them.
   */
  public void check() {
    List<String> faults = new ArrayList<>();
    for (Entry entry : ALL) {
      try {
        switch (entry.unit) {
          case "bytes", "ms", "count" -> number(entry);
          case "share" -> share(entry);
          default -> word(entry);
        }
      } catch (IllegalArgumentException e) {
        faults.add(e.getMessage());
      }
    }
    if (faults.stream().noneMatch(fault -> fault.startsWith(POOL_BYTES.key) || fault.startsWith(PAGE_BYTES.key))
        && number(POOL_BYTES) > 0 && number(POOL_BYTES) < number(PAGE_BYTES)) {
      faults.add(POOL_BYTES.key + " is '" + text(POOL_BYTES) + "', less than one page; set it to at least " + PAGE_BYTES.key + ", which is "
          + text(PAGE_BYTES) + ", or leave it out");
    }
    if (!faults.isEmpty()) {
      throw new IllegalArgumentException(String.join(". ", faults));
    }
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

  /** A whole number of the entry's unit, within its limits. */
  public long number(Entry entry) {
    boolean negative = text(entry).strip().matches("-[0-9]+[a-zA-Z]*"); // Quantity knows no sign
    long value = negative ? -1 : parsed(entry, text(entry));
    if (value == 0 && entry.defaultValue.equals("0")) {
      return 0;
    }
    if (value < parsed(entry, entry.least)) {
      throw bad(entry, (entry.defaultValue.equals("0") && !entry.least.equals("0") ? "0 or " : "") + "at least " + entry.least);
    }
    if (entry.most != null && value > parsed(entry, entry.most)) {
      throw bad(entry, "at most " + entry.most);
    }
    return value;
  }

  private long parsed(Entry entry, String text) {
    try {
      return switch (entry.unit) {
        case "bytes" -> Quantity.bytes(text);
        case "ms" -> Quantity.millis(text);
        default -> Quantity.count(text);
      };
    } catch (IllegalArgumentException e) {
      throw bad(entry, e.getMessage());
    }
  }

  /** A number of a setting whose limits are those of an array. */
  public int size(Entry entry) {
    return Math.toIntExact(number(entry));
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

  private IllegalArgumentException bad(Entry entry, String wanted) {
    String key = source.apply(entry.key) == null && set(entry) != null ? entry.former : entry.key;
    return new IllegalArgumentException(key + " is '" + text(entry) + "'; it must be " + wanted + ". Leave it out for the default, "
        + entry.defaultValue);
  }
}
