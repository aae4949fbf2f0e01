package org.gristmill.spark.writer;

import java.io.OutputStream;
import java.util.Arrays;

/** A byte array that grows as it is written, and can be emptied and used again without being allocated again. */
public final class GrowingBuffer extends OutputStream {
  private static final int LENGTH_MAX = Integer.MAX_VALUE - 16;
  private static final int DOUBLING_MAX = 1 << 18; // arrays of 512 KiB are more than the garbage collector (G1) likes to move

  private byte[] bytes;
  private int length;

  GrowingBuffer(int capacity) {
    bytes = new byte[capacity];
  }

  @Override
  public void write(int b) {
    ensure(1);
    bytes[length++] = (byte) b;
  }

  @Override
  public void write(byte[] from, int offset, int count) {
    ensure(count);
    System.arraycopy(from, offset, bytes, length, count);
    length += count;
  }

  /** The buffer's array; valid to {@link #length()} and until the next write. */
  public byte[] bytes() {
    return bytes;
  }

  public int length() {
    return length;
  }

  int capacity() {
    return bytes.length;
  }

  /** Empties the buffer and leaves {@code count} bytes at its front for the caller to fill. */
  void restart(int count) {
    length = 0;
    ensure(count);
    length = count;
  }

  /**
   * The array, with room for {@code count} bytes at {@link #length()}; {@link #wrote} says how many of them are there.
   */
  byte[] room(int count) {
    ensure(count);
    return bytes;
  }

  void wrote(int count) {
    length += count;
  }

  private void ensure(int count) {
    if (bytes.length - length < count) {
      if (LENGTH_MAX - length < count) {
        throw new OutOfMemoryError("a record does not fit into " + LENGTH_MAX + " bytes");
      }
      long grown = bytes.length + (long) (bytes.length < DOUBLING_MAX ? bytes.length : bytes.length / 4);
      bytes = Arrays.copyOf(bytes, (int) Math.min(LENGTH_MAX, Math.max(length + (long) count, grown)));
    }
  }
}
