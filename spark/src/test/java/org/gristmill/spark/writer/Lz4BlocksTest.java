package org.gristmill.spark.writer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.io.LZ4CompressionCodec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Bytes that are written without Spark's stream are read by Spark's stream. */
class Lz4BlocksTest {
  private static final int BLOCK = 1 << 15;

  private static byte[] read(GrowingBuffer written) throws IOException {
    return new LZ4CompressionCodec(new SparkConf(false))
        .compressedInputStream(new ByteArrayInputStream(written.bytes(), 0, written.length())).readAllBytes();
  }

  private static GrowingBuffer buffer(byte[] bytes) {
    GrowingBuffer buffer = new GrowingBuffer(1);
    buffer.write(bytes, 0, bytes.length);
    return buffer;
  }

  private static byte[] noise(int length) {
    byte[] bytes = new byte[length];
    new Random(length).nextBytes(bytes);
    return bytes;
  }

  private static byte[] sameLetters(int length) {
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, (byte) 'a');
    return bytes;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 63, 5000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7})
  void sparkReadsBodiesOfAnyLength(int length) throws IOException {
    for (byte[] body : new byte[][] {noise(length), sameLetters(length)}) {
      GrowingBuffer written = new GrowingBuffer(1);
      new Lz4Blocks(BLOCK).write(buffer(body), written);
      assertArrayEquals(body, read(written));
    }
  }

  @Test
  void repetitionsShrinkAndRandomBytesHardlyGrow() {
    GrowingBuffer repeats = new GrowingBuffer(1);
    new Lz4Blocks(BLOCK).write(buffer(sameLetters(BLOCK)), repeats);
    assertTrue(repeats.length() < BLOCK / 100, repeats.length() + " bytes");
    GrowingBuffer noise = new GrowingBuffer(1);
    new Lz4Blocks(BLOCK).write(buffer(noise(BLOCK)), noise);
    assertTrue(noise.length() < BLOCK + 50, noise.length() + " bytes");
  }

  @Test
  void bodiesThatLieEndToEndAreReadAsOne() throws IOException {
    GrowingBuffer written = new GrowingBuffer(1);
    Lz4Blocks blocks = new Lz4Blocks(64);
    blocks.write(buffer(noise(200)), written);
    blocks.write(buffer(sameLetters(200)), written);
    byte[] both = Arrays.copyOf(noise(200), 400);
    Arrays.fill(both, 200, 400, (byte) 'a');
    assertArrayEquals(both, read(written));
  }

  /** Blocks after one that gains nothing are not tried; what repeats is found all the same, not much later. */
  @Test
  void compressionIsTriedAgainAfterSomeBlocksThatGainNothing() throws IOException {
    GrowingBuffer written = new GrowingBuffer(1);
    Lz4Blocks blocks = new Lz4Blocks(BLOCK);
    blocks.write(buffer(noise(BLOCK)), written);
    blocks.write(buffer(sameLetters(100 * BLOCK)), written);
    byte[] both = Arrays.copyOf(noise(BLOCK), 101 * BLOCK);
    Arrays.fill(both, BLOCK, both.length, (byte) 'a');
    assertArrayEquals(both, read(written));
    assertTrue(written.length() < 18 * BLOCK, written.length() + " bytes");
  }

  @Test
  void aFewBytesThatDoNotGetSmallerDoNotStopCompression() {
    byte[] body = Arrays.copyOf(sameLetters(BLOCK), BLOCK + 40);
    System.arraycopy(noise(40), 0, body, BLOCK, 40);
    GrowingBuffer written = new GrowingBuffer(1);
    Lz4Blocks blocks = new Lz4Blocks(BLOCK);
    for (int i = 0; i < 50; i++) {
      blocks.write(buffer(body), written);
    }
    assertTrue(written.length() < 5 * BLOCK, written.length() + " bytes");
  }

  @Test
  void aBlockSizeThatTheFormatCannotSayIsRefused() {
    assertThrows(IllegalArgumentException.class, () -> new Lz4Blocks(63));
    assertThrows(IllegalArgumentException.class, () -> new Lz4Blocks((1 << 25) + 1));
    new Lz4Blocks(1 << 25);
  }
}
