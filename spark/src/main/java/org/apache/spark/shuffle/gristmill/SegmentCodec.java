package org.apache.spark.shuffle.gristmill;

import java.io.InputStream;
import java.io.OutputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockId;

/**
 * How the bodies of segments are compressed and encrypted: as Spark does it with shuffle blocks, so that Spark's settings hold and
 * its streams read them.
 *
 * <p>A codec of Spark's allocates buffers of its block size for each stream, 64 KiB and more. Many maps with many partitions write
 * segments of a few KiB, which get a codec with small blocks: for the reader, who finds the size in the stream, that is no difference.
 */
final class SegmentCodec {
  private static final int SMALL_BYTES = 8 << 10;

  private final SerializerManager streams;
  private final boolean compresses;
  private final boolean concatenates;
  private final CompressionCodec small;

  SegmentCodec(SparkConf conf, SerializerManager streams) {
    this.streams = streams;
    compresses = conf.getBoolean("spark.shuffle.compress", true);
    String blockBytes = SMALL_BYTES + "b";
    small = CompressionCodec$.MODULE$.createCodec(conf.clone().set("spark.io.compression.lz4.blockSize", blockBytes)
        .set("spark.io.compression.snappy.blockSize", blockBytes).set("spark.io.compression.zstd.bufferSize", blockBytes));
    concatenates = !compresses || CompressionCodec$.MODULE$.supportsConcatenationOfSerializedStreams(small);
  }

  /** Compresses and encrypts a body of {@code bytes} bytes, as far as Spark is told to. */
  OutputStream wrap(int shuffle, OutputStream out, int bytes) {
    return compresses && bytes <= SMALL_BYTES ? small.compressedOutputStream(streams.wrapForEncryption(out))
        : streams.wrapStream(block(shuffle), out);
  }

  /** The other way round. */
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
