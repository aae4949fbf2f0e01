package org.gristmill.core.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * A summary of a map attempt's output: a count of its records and the sum of their hashes, which does not depend on their order. A
 * record's hash includes its partition, so two attempts have the same digest if they wrote the same records into the same partitions. {@code rows} is Spark's own
 * checksum of the rows, or 0 where it makes none.
 */
public record Digest(long records, long sum, long rows) {
  private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ODD = 0x9e3779b97f4a7c15L; // 2^64 over the golden ratio

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
    long rest = 0;
    for (; at < to; at++) {
      rest = rest << 8 | bytes[at] & 0xff;
    }
    return spread(step(hash, rest));
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
    return String.format("%d records with checksum %016x", records, sum ^ rows);
  }
}
