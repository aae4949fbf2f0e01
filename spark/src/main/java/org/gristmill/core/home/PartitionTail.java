package org.gristmill.core.home;

import java.util.ArrayList;
import java.util.List;
import org.gristmill.core.format.Segment;

/** Segments of one partition, end to end, in the memory of its home. */
final class PartitionTail {
  /** A segment that a home has received. */
  record Received(byte[] bytes, Segment.Header header) {}

  private final List<Received> segments = new ArrayList<>();
  private long length;

  void add(Received segment) {
    segments.add(segment);
    length += segment.bytes.length;
  }

  long length() {
    return length;
  }

  List<Received> segments() {
    return segments;
  }

  /** Copies {@code count} bytes from byte {@code from} on. */
  void copy(long from, byte[] into, int at, int count) {
    long skip = from;
    int copied = 0;
    for (Received segment : segments) {
      int here = (int) Math.min(segment.bytes.length - skip, count - copied);
      if (here > 0) {
        System.arraycopy(segment.bytes, (int) skip, into, at + copied, here);
        copied += here;
      }
      skip = Math.max(0, skip - segment.bytes.length);
    }
  }
}
