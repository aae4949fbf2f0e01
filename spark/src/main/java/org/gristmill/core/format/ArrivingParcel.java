package org.gristmill.core.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A parcel on its way in: pieces of any size go in, whole segments come out. Each segment has an array of its own,
 * which its home keeps until it is on disk; a parcel in one array would be so large that the garbage collector treats
 * it apart, and would stay until its last segment is on disk.
 *
 * <p>A length that a header declares is not believed before the bytes are there: the array of a long segment grows as
 * they arrive.
 */
public final class ArrivingParcel {
  private static final int START_BYTES_MAX = 1 << 20; // of a segment's array, which doubles until it has the length declared

  private final ByteBuffer header = ByteBuffer.allocate(Segment.HEADER_BYTES);
  private final List<byte[]> segments = new ArrayList<>();
  private long missingBytes;
  private ByteBuffer segment;
  private int segmentBytes;

  /** @param bytes length of the parcel */
  public ArrivingParcel(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("a parcel cannot have " + bytes + " bytes");
    }
    missingBytes = bytes;
  }

  /** Takes the next piece, all of it. */
  public void add(ByteBuffer piece) throws IOException {
    while (piece.hasRemaining()) {
      if (segment == null) {
        move(piece, header);
        if (!header.hasRemaining()) {
          int limit = (int) Math.min(Integer.MAX_VALUE, Segment.HEADER_BYTES + missingBytes);
          segmentBytes = Segment.header(header.array(), 0, limit).segmentBytes();
          segment = ByteBuffer.allocate(Math.min(segmentBytes, START_BYTES_MAX)).put(header.flip());
          header.clear();
        }
      } else {
        move(piece, segment);
      }
      if (segment != null && !segment.hasRemaining()) {
        fill();
      }
    }
  }

  /** The array of the segment is full: the segment is whole, or gets an array twice as long. */
  private void fill() {
    if (segment.capacity() == segmentBytes) {
      segments.add(segment.array());
      segment = null;
    } else {
      segment = ByteBuffer.allocate((int) Math.min(segmentBytes, 2L * segment.capacity())).put(segment.flip());
    }
  }

  /** The segments, when every piece has been added. */
  public List<byte[]> segments() throws IOException {
    if (missingBytes != 0 || segment != null || header.position() > 0) {
      throw new IOException("a parcel was cut off: " + missingBytes + " bytes are missing");
    }
    return segments;
  }

  private void move(ByteBuffer from, ByteBuffer to) {
    int count = Math.min(from.remaining(), to.remaining());
    to.put(from.slice().limit(count));
    from.position(from.position() + count);
    missingBytes -= count;
  }
}
