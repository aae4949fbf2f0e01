package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.io.LZ4CompressionCodec;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockId;
import org.gristmill.spark.writer.BodyWriter;
import org.gristmill.spark.writer.GrowingBuffer;
import org.gristmill.spark.writer.Lz4Blocks;

/**
 * How the bodies of segments are compressed and encrypted: as Spark does it with shuffle blocks, so that Spark's
 * settings hold and its streams read them.
 *
 * <p>A codec of Spark's allocates buffers of its block size for each stream, 64 KiB and more. Many maps with many
 * partitions write segments of a few KiB. So what LZ4 is to compress, Spark's default, is written without a stream
 * ({@link Lz4Blocks}); with other codecs small segments get small blocks. To the reader, which finds the size in the
 * stream, it makes no difference.
 */
final class SegmentCodec {
  private static final int SMALL_BYTES = 8 << 10;

  private final SerializerManager streams;
  private final boolean compresses;
  private final boolean concatenates;
  private final CompressionCodec small;
  private final long lz4BlockBytes; // 0 if it is not LZ4 alone that is done to a body

  SegmentCodec(SparkConf conf, SerializerManager streams) {
    this.streams = streams;
    compresses = conf.getBoolean("spark.shuffle.compress", true);
    String blockBytes = SMALL_BYTES + "b";
    small = CompressionCodec$.MODULE$.createCodec(conf.clone().set("spark.io.compression.lz4.blockSize", blockBytes)
        .set("spark.io.compression.snappy.blockSize", blockBytes).set("spark.io.compression.zstd.bufferSize", blockBytes));
    lz4BlockBytes = compresses && !streams.encryptionEnabled() && small.getClass() == LZ4CompressionCodec.class
        ? conf.getSizeAsBytes("spark.io.compression.lz4.blockSize", "32k")
        : 0;
    concatenates = !compresses || CompressionCodec$.MODULE$.supportsConcatenationOfSerializedStreams(small);
  }

  /** Returns a writer of bodies for one task. */
  BodyWriter writer(int shuffle) {
    return lz4BlockBytes > 0 ? new Lz4Blocks(lz4BlockBytes) : (body, to) -> write(shuffle, body, to);
  }

  private void write(int shuffle, GrowingBuffer body, GrowingBuffer to) throws IOException {
    try (OutputStream out = compresses && body.length() <= SMALL_BYTES
        ? small.compressedOutputStream(streams.wrapForEncryption(to))
        : streams.wrapStream(block(shuffle), to)) {
      out.write(body.bytes(), 0, body.length());
    }
  }

  /** Decrypts and decompresses a body, or bodies end to end. */
  InputStream unwrap(int shuffle, InputStream in) {
    return streams.wrapStream(block(shuffle), in);
  }

  /** Whether bodies that lie end to end can be read as one stream, if that is so before they are compressed. */
  boolean canJoin(boolean relocatable) {
    return relocatable && !streams.encryptionEnabled() && concatenates;
  }

  /** Spark looks only at what kind of block it is. */
  private static ShuffleBlockId block(int shuffle) {
    return new ShuffleBlockId(shuffle, 0, 0);
  }
}
