package org.gristmill.core.home;

import java.util.ArrayList;
import java.util.List;
import org.gristmill.core.format.Segment;

/** Segments of one partition, end to end, in the memory of its home. */
final class PartitionTail {
  private final List<byte[]> segments = new ArrayList<>();
  private final List<Segment.Header> headers = new ArrayList<>();
  private long length;

  void add(byte[] segment, Segment.Header header) {
    segments.add(segment);
    headers.add(header);
    length += segment.length;
  }

  long length() {
    return length;
  }

  List<byte[]> segments() {
    return segments;
  }

  List<Segment.Header> headers() {
    return headers;
  }

  /** Copies {@code count} bytes from byte {@code from} on. */
  void copy(long from, byte[] into, int at, int count) {
    long skip = from;
    int copied = 0;
    for (byte[] segment : segments) {
      int here = (int) Math.min(segment.length - skip, count - copied);
      if (here > 0) {
        System.arraycopy(segment, (int) skip, into, at + copied, here);
        copied += here;
      }
      skip = Math.max(0, skip - segment.length);
    }
  }
}
