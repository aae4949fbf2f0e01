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

/** Records in temporary files of Spark, compressed and encrypted as its settings say. */
record SpillFile(BlockManager blocks, SerializerInstance serializer) implements SpillFiles {
  private static final int BUFFER_BYTES = 1 << 15;

  @Override
  @SuppressWarnings("unchecked") // the records are those that were written
  public <K, C> Spilled<K, C> write(java.util.Iterator<Product2<K, C>> from) throws IOException {
    Tuple2<TempLocalBlockId, File> block = blocks.diskBlockManager().createTempLocalBlock();
    File file = block._2();
    try {
      DeserializationStream stream = written(block._1(), file, from);
      return new Spilled<>((Iterator<Product2<K, C>>) (Iterator<?>) stream.asKeyValueIterator(), file.length(), () -> {
        stream.close();
        file.delete(); // if that fails, Spark deletes it with its folder for temporary files
      });
    } catch (Throwable e) {
      file.delete();
      throw e;
    }
  }

  private <K, C> DeserializationStream written(TempLocalBlockId block, File file, java.util.Iterator<Product2<K, C>> from) throws IOException {
    try (DiskBlockObjectWriter out = blocks.getDiskWriter(block, file, serializer, BUFFER_BYTES, new ShuffleWriteMetrics())) {
      while (from.hasNext()) {
        Product2<K, C> record = from.next();
        out.write(record._1(), record._2());
      }
      out.commitAndGet();
    }
    return serializer.deserializeStream(blocks.serializerManager().wrapStream(block, new FileInputStream(file)));
  }
}
