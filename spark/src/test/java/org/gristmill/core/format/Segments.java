package org.gristmill.core.format;

import java.io.ByteArrayOutputStream;

/** Makes segments for tests. */
public final class Segments {
  private Segments() {}

  public static byte[] segment(int shuffle, int partition, int mapIndex, long attempt, int sequence, boolean last, String body) {
    byte[] bytes = new byte[Segment.HEADER_BYTES + body.length()];
    for (int i = 0; i < body.length(); i++) {
      bytes[Segment.HEADER_BYTES + i] = (byte) body.charAt(i);
    }
    Segment.seal(bytes, bytes.length, shuffle, partition, mapIndex, attempt, sequence, last, body.length());
    return bytes;
  }

  public static byte[] join(byte[]... segments) {
    ByteArrayOutputStream joined = new ByteArrayOutputStream();
    for (byte[] segment : segments) {
      joined.writeBytes(segment);
    }
    return joined.toByteArray();
  }
}
