package org.gristmill.core.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * What one task attempt wrote for one partition in one go: a header and a body that can be read alone (serialised,
 * compressed, perhaps encrypted). A page is segments of one partition back to back, a parcel is pages back to back, and
 * a store file is parcels sorted into partitions; so segments are all there is on the wire and on disk.
 *
 * <pre>
 *  byte  0        4        8           12         16        24         28      32        36           40     44
 *        | magic  | shuffle | partition | map index | attempt | sequence | flags | records | body bytes | crc  | body ...
 * </pre>
 *
 * All numbers are big endian. {@code attempt} is Spark's task attempt id, unique in an application. {@code sequence}
 * counts the segments of one (attempt, partition) from 0, and flag 1 marks the last, so that a reader knows from the
 * segments alone whether it has them all. {@code crc} is the CRC-32C of the 40 bytes before it and of the body.
 */
public final class Segment {
  public static final int MAGIC = 0x474d5331; // "GMS1"
  public static final int HEADER_BYTES = 44;
  private static final int CRC_AT = 40;
  private static final int FLAG_LAST = 1;

  /** A segment's header, as read. */
  public record Header(int shuffle, int partition, int mapIndex, long attempt, int sequence, boolean last, int records,
      int bodyBytes, int crc) {
    public int segmentBytes() {
      return HEADER_BYTES + bodyBytes;
    }
  }

  private Segment() {}

  /** Fills the header of a segment whose body already lies at {@code bytes[HEADER_BYTES .. length)}. */
  public static void seal(byte[] bytes, int length, int shuffle, int partition, int mapIndex, long attempt, int sequence,
      boolean last, int records) {
    ByteBuffer header = ByteBuffer.wrap(bytes, 0, length);
    header.putInt(MAGIC).putInt(shuffle).putInt(partition).putInt(mapIndex).putLong(attempt).putInt(sequence);
    header.putInt(last ? FLAG_LAST : 0).putInt(records).putInt(length - HEADER_BYTES);
    header.putInt(crc(bytes, 0, length));
  }

  /** Reads the header at {@code offset}; the body must lie within {@code limit}, and no number may be negative. */
  public static Header header(byte[] bytes, int offset, int limit) throws IOException {
    if (limit - offset < HEADER_BYTES) {
      throw new IOException("segment header cut off: " + (limit - offset) + " bytes left, " + HEADER_BYTES + " needed");
    }
    ByteBuffer in = ByteBuffer.wrap(bytes, offset, HEADER_BYTES);
    int magic = in.getInt();
    if (magic != MAGIC) {
      throw new IOException(String.format("not a segment at byte %d: magic %08x, expected %08x", offset, magic, MAGIC));
    }
    Header header = new Header(in.getInt(), in.getInt(), in.getInt(), in.getLong(), in.getInt(),
        (in.getInt() & FLAG_LAST) != 0, in.getInt(), in.getInt(), in.getInt());
    if (header.bodyBytes < 0 || header.bodyBytes > limit - offset - HEADER_BYTES) {
      throw new IOException("segment body cut off at byte " + offset + ": " + header);
    }
    if ((header.shuffle | header.partition | header.mapIndex | header.sequence | header.records) < 0 || header.attempt < 0) {
      throw new IOException("a segment with a negative number at byte " + offset + ": " + header);
    }
    return header;
  }

  /** True if the segment of {@code length} bytes at {@code offset} has the checksum that its header says. */
  public static boolean intact(byte[] bytes, int offset, int length) {
    return ByteBuffer.wrap(bytes).getInt(offset + CRC_AT) == crc(bytes, offset, length);
  }

  private static int crc(byte[] bytes, int offset, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, offset, CRC_AT);
    crc.update(bytes, offset + HEADER_BYTES, length - HEADER_BYTES);
    return (int) crc.getValue();
  }
}
