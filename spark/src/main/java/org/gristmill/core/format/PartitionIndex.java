package org.gristmill.core.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the segments of one partition lie in its home's store file. It travels to readers on other executors in this
 * form:
 *
 * <pre>
 *  | magic 4 | count 4 | count times: map index 4, attempt 8, sequence 4, last 1, records 4, offset 8, bytes 4 |
 * </pre>
 */
public record PartitionIndex(List<Entry> entries) {
  public static final int MAGIC = 0x474d4931; // "GMI1"
  private static final int HEAD_BYTES = 8;
  private static final int ENTRY_BYTES = 33;
  /** No store file is longer: an offset must fit into the name of a block. */
  public static final long OFFSET_MAX = (1L << 40) - 1;
  /** No shuffle has more partitions: a partition's number must fit into the name of a block, too. */
  public static final int PARTITIONS_MAX = 1 << 22;

  /**
   * One segment: the attempt that wrote it, and the {@code bytes} (header included) at {@code offset} of the store
   * file.
   */
  public record Entry(int mapIndex, long attempt, int sequence, boolean last, int records, long offset, int bytes) {}

  public byte[] encode() {
    ByteBuffer out = ByteBuffer.allocate(Math.toIntExact(HEAD_BYTES + (long) ENTRY_BYTES * entries.size()));
    out.putInt(MAGIC).putInt(entries.size());
    for (Entry e : entries) {
      out.putInt(e.mapIndex).putLong(e.attempt).putInt(e.sequence).put((byte) (e.last ? 1 : 0)).putInt(e.records);
      out.putLong(e.offset).putInt(e.bytes);
    }
    return out.array();
  }

  public static PartitionIndex decode(ByteBuffer in) throws IOException {
    if (in.remaining() < HEAD_BYTES || in.getInt() != MAGIC) {
      throw new IOException("not a partition index");
    }
    int count = in.getInt();
    if (count < 0 || in.remaining() != (long) count * ENTRY_BYTES) {
      throw new IOException("partition index of " + count + " entries in " + in.remaining() + " bytes");
    }
    List<Entry> entries = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      Entry e = new Entry(in.getInt(), in.getLong(), in.getInt(), in.get() != 0, in.getInt(), in.getLong(), in.getInt());
      if ((e.mapIndex | e.sequence | e.records) < 0 || e.attempt < 0 || e.bytes < Segment.HEADER_BYTES || e.offset < 0
          || e.offset > OFFSET_MAX - e.bytes) {
        throw new IOException("a partition index names a segment that cannot be: " + e);
      }
      entries.add(e);
    }
    return new PartitionIndex(entries);
  }
}
