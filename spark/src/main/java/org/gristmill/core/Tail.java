package org.gristmill.core;

import java.util.ArrayList;
import java.util.List;

/** Segments of one partition that wait at its home to be appended together. */
final class Tail {
  private final List<byte[]> segments = new ArrayList<>();
  private final List<Segment.Header> headers = new ArrayList<>();
  private int length;

  void add(byte[] segment, Segment.Header header) {
    segments.add(segment);
    headers.add(header);
    length += segment.length;
  }

  int length() {
    return length;
  }

  List<byte[]> segments() {
    return segments;
  }

  List<Segment.Header> headers() {
    return headers;
  }
}
