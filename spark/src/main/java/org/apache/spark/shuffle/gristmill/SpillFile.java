package org.apache.spark.shuffle.gristmill;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.serializer.DeserializationStream;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.DiskBlockObjectWriter;
import org.apache.spark.storage.TempLocalBlockId;
import org.gristmill.spark.reader.SpillFiles;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;

/** Records in a temporary file of Spark, compressed and encrypted as its settings say. */
final class SpillFile<K, C> implements SpillFiles.Spilled<K, C> {
  private static final int BUFFER_BYTES = 1 << 15;

  private final File file;
  private final long bytes;
  private final DeserializationStream stream;
  private final Iterator<Tuple2<Object, Object>> records;

  private SpillFile(BlockManager blocks, SerializerInstance serializer, java.util.Iterator<Product2<K, C>> from) throws IOException {
    Tuple2<TempLocalBlockId, File> block = blocks.diskBlockManager().createTempLocalBlock();
    file = block._2();
    try {
      stream = written(blocks, serializer, block._1(), from);
    } catch (Throwable e) {
      file.delete();
      throw e;
    }
    bytes = file.length();
    records = stream.asKeyValueIterator();
  }

  private DeserializationStream written(BlockManager blocks, SerializerInstance serializer, TempLocalBlockId block,
      java.util.Iterator<Product2<K, C>> from) throws IOException {
    try (DiskBlockObjectWriter out = blocks.getDiskWriter(block, file, serializer, BUFFER_BYTES, new ShuffleWriteMetrics())) {
      while (from.hasNext()) {
        Product2<K, C> record = from.next();
        out.write(record._1(), record._2());
      }
      out.commitAndGet();
    }
    return serializer.deserializeStream(blocks.serializerManager().wrapStream(block, new FileInputStream(file)));
  }

  static SpillFiles in(BlockManager blocks, SerializerInstance serializer) {
    return new SpillFiles() {
      @Override
      public <K, C> Spilled<K, C> write(java.util.Iterator<Product2<K, C>> from) throws IOException {
        return new SpillFile<>(blocks, serializer, from);
      }
    };
  }

  @Override
  @SuppressWarnings("unchecked") // the records are those that were written
  public Iterator<Product2<K, C>> records() {
    return (Iterator<Product2<K, C>>) (Iterator<?>) records;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void close() {
    stream.close();
    file.delete(); // if that fails, Spark deletes it with its folder for temporary files
  }
}
