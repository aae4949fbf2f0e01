package org.gristmill.spark.writer;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/**
 * The stream that Spark's LZ4 codec reads, written from array to array. The codec's own stream allocates two buffers of
 * a block and a checksum with a finaliser each time; with many maps and partitions a body has hardly more bytes than
 * that.
 *
 * <p>After a block's worth of bytes that hardly got smaller the next ones are stored as they are: compressing random
 * text, which gains nothing, is an eighth of a map task. One writer serves one task, so it measures that task's records
 * only.
 *
 * <pre>
 *  | "LZ4Block" 8 | token 1 | stored bytes 4 | bytes 4 | xxHash32 4 | block |   ...   and last one header of 0 bytes
 * </pre>
 *
 * Numbers are little endian. The token is 0x10 for a block as it was, 0x20 for a compressed one, plus the logarithm to
 * the base 2 of the size that no block exceeds, less 10. Of the checksum, which is of the uncompressed bytes, 28 bits
 * count.
 */
public final class Lz4Blocks implements BodyWriter {
  private static final byte[] MAGIC = "LZ4Block".getBytes(StandardCharsets.US_ASCII);
  private static final int HEADER_BYTES = MAGIC.length + 13;
  private static final int PLAIN = 0x10;
  private static final int COMPRESSED = 0x20;
  private static final int LEVEL_BASE = 10;
  private static final int BLOCK_BYTES_MIN = 64;
  private static final int BLOCK_BYTES_MAX = 1 << LEVEL_BASE + 15;
  private static final int UNTRIED_BLOCKS = 15; // after one's worth that did not get smaller by a sixteenth
  private static final int HASH_SEED = 0x9747b28c;
  private static final int HASH_MASK = 0xfffffff;

  private final LZ4Compressor compressor = LZ4Factory.fastestInstance().fastCompressor();
  private final XXHash32 hash = XXHashFactory.fastestInstance().hash32();
  private final int blockBytes;
  private final int level;
  private int tried;
  private int saved;
  private int untried;

  public Lz4Blocks(long blockBytes) {
    if (blockBytes < BLOCK_BYTES_MIN || blockBytes > BLOCK_BYTES_MAX) {
      throw new IllegalArgumentException("spark.io.compression.lz4.blockSize is " + blockBytes + "; it must be from "
          + BLOCK_BYTES_MIN + " to " + BLOCK_BYTES_MAX + " bytes");
    }
    this.blockBytes = (int) blockBytes;
    level = Math.max(0, Integer.SIZE - Integer.numberOfLeadingZeros(this.blockBytes - 1) - LEVEL_BASE);
  }

  @Override
  public void write(GrowingBuffer from, GrowingBuffer to) {
    for (int at = 0; at < from.length(); at += blockBytes) {
      block(from.bytes(), at, Math.min(blockBytes, from.length() - at), to);
    }
    header(to.room(HEADER_BYTES), to.length(), PLAIN, 0, 0, 0);
    to.wrote(HEADER_BYTES);
  }

  private void block(byte[] from, int at, int count, GrowingBuffer to) {
    int bound = compressor.maxCompressedLength(count);
    byte[] room = to.room(HEADER_BYTES + bound);
    int start = to.length();
    int stored = count;
    if (untried > 0) {
      untried -= count;
    } else {
      stored = compressor.compress(from, at, count, room, start + HEADER_BYTES, bound);
      tried += count;
      saved += Math.max(0, count - stored);
      // A body's last block alone, of a few bytes, would say nothing.
      if (tried >= blockBytes) {
        untried = saved < tried / 16 ? UNTRIED_BLOCKS * blockBytes : 0;
        tried = 0;
        saved = 0;
      }
    }
    int method = COMPRESSED;
    if (stored >= count) {
      method = PLAIN;
      stored = count;
      System.arraycopy(from, at, room, start + HEADER_BYTES, count);
    }
    header(room, start, method, stored, count, hash.hash(from, at, count, HASH_SEED) & HASH_MASK);
    to.wrote(HEADER_BYTES + stored);
  }

  private void header(byte[] into, int at, int method, int stored, int count, int sum) {
    ByteBuffer.wrap(into, at, HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN).put(MAGIC).put((byte) (method | level)).putInt(stored)
        .putInt(count).putInt(sum);
  }
}
