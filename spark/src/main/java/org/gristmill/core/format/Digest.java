package org.gristmill.core.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A summary of a map attempt's output, made of sums over its records, so that it does not depend on their order. It
 * tells whether another attempt of the map has written the same, and if not, whether partitions of both can be read
 * together without losing a record.
 *
 * @param records their count
 * @param keys the sum of hashes of partition and key
 * @param values the sum of hashes of partition, key and value, so that a value that has moved to another key shows
 * @param rows Spark's own checksum of the rows, or 0 where it makes none
 * @param positional true if keys say where a record goes and nothing about what it is: numbers in sequence (round
 *     robin), or PySpark's batches
 * @param columns of the values: the fields of SQL's rows or of a tuple, otherwise one
 */
public record Digest(long records, long keys, long values, long rows, boolean positional, List<Column> columns) {
  /** Sums of doubles that differ by less than this share of what was added differ by rounding only. */
  private static final double ROUNDING = 1e-9;
  private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ODD = 0x9e3779b97f4a7c15L; // 2^64 over the golden ratio

  /** How what an attempt wrote differs from what another one wrote, from the least to the worst. */
  public enum Change {
    NONE,
    /** Each partition has the same keys: partitions of both can be read together. */
    VALUES,
    /** Records may be in other partitions, so reading partitions of both would lose some and double others. */
    KEYS
  }

  /**
   * A column of the values, twice: over all partitions ({@code all}, {@code sum}), and with each partition's share
   * multiplied by a number of its own ({@code placed}, {@code weighted}). If the first is the same and the second is
   * not, the content has moved between partitions.
   *
   * @param all the sum of hashes of its content
   * @param sum of it as numbers; of what is no number, of its length
   * @param magnitude the sum of the absolute values, to tell rounding from a difference
   */
  public record Column(long all, long placed, double sum, double weighted, double magnitude) {
    private static final Column NONE = new Column(0, 0, 0, 0, 0);

    private boolean hasMoved(Column to) {
      return placed != to.placed && (all == to.all || isClose(sum, to.sum, to) && !isClose(weighted, to.weighted, to));
    }

    private boolean isClose(double mine, double its, Column of) {
      return Math.abs(mine - its) <= ROUNDING * Math.max(magnitude, of.magnitude);
    }
  }

  /** The digest of an attempt that has written no record. */
  public static final Digest EMPTY = new Digest(0, 0, 0, 0, false, List.of());

  /**
   * What has changed since an earlier attempt of the same map. Where there is one partition, or keys that say what a
   * record is, the same keys mean that every record is where it was. Rows of SQL have no key of their own, so their
   * columns must not have moved either.
   */
  public Change since(Digest earlier, int partitions) {
    if (records != earlier.records || keys != earlier.keys) {
      return Change.KEYS;
    } else if (values == earlier.values && rows == earlier.rows) {
      return Change.NONE;
    }
    return partitions > 1 && (positional || earlier.positional || hasMovedSince(earlier)) ? Change.KEYS : Change.VALUES;
  }

  private boolean hasMovedSince(Digest earlier) {
    for (int c = 0; c < Math.max(columns.size(), earlier.columns.size()); c++) {
      if (column(c).hasMoved(earlier.column(c))) {
        return true;
      }
    }
    return false;
  }

  private Column column(int c) {
    return c < columns.size() ? columns.get(c) : Column.NONE;
  }

  /** The hash of a record with nothing in it yet. */
  public static long start(int partition) {
    return spread(partition + 1L);
  }

  /** Goes on with bytes [from, to). The result is spread over all 64 bits, so that sums of hashes are as good. */
  public static long hash(byte[] bytes, int from, int to, long start) {
    long hash = step(start, to - from);
    int at = from;
    for (; at <= to - 8; at += 8) {
      hash = step(hash, (long) WORDS.get(bytes, at));
    }
    return spread(step(hash, at < to ? lastBytes(bytes, at, to) : 0));
  }

  /** Fewer than eight bytes: the last ones of the word that ends with them, if there is one. */
  private static long lastBytes(byte[] bytes, int from, int to) {
    if (to >= Long.BYTES) {
      return (long) WORDS.get(bytes, to - Long.BYTES) >>> Long.SIZE - Byte.SIZE * (to - from);
    }
    long rest = 0;
    for (int at = to - 1; at >= from; at--) {
      rest = rest << 8 | bytes[at] & 0xff;
    }
    return rest;
  }

  /** Takes one more number into a hash. */
  public static long step(long hash, long number) {
    long mixed = (hash ^ number) * ODD;
    return mixed ^ mixed >>> 32;
  }

  /** Lets every bit decide on every other (the end of MurmurHash3). */
  public static long spread(long hash) {
    long h = (hash ^ hash >>> 33) * 0xff51afd7ed558ccdL;
    h = (h ^ h >>> 33) * 0xc4ceb9fe1a85ec53L;
    return h ^ h >>> 33;
  }

  @Override
  public String toString() {
    return String.format("%d records, checksums %016x of keys and %016x of values", records, keys, values ^ rows);
  }
}
