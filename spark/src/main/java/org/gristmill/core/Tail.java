package org.gristmill.core;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Segments of one partition that wait at its home to be appended together. */
final class Tail {
  private static final int START_BYTES = 4096;

  private byte[] bytes = new byte[START_BYTES];
  private int length;
  private final List<Segment.Header> headers = new ArrayList<>();

  void add(byte[] from, int offset, Segment.Header header) {
    int size = header.segmentBytes();
    if (bytes.length - length < size) {
      bytes = Arrays.copyOf(bytes, Math.max(length + size, (int) Math.min(Integer.MAX_VALUE - 16, bytes.length * 2L)));
    }
    System.arraycopy(from, offset, bytes, length, size);
    length += size;
    headers.add(header);
  }

  int length() {
    return length;
  }

  List<Segment.Header> headers() {
    return headers;
  }

  ByteBuffer buffer() {
    return ByteBuffer.wrap(bytes, 0, length);
  }
}
