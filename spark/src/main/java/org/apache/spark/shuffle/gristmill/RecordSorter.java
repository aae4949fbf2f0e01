package org.apache.spark.shuffle.gristmill;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.serializer.DeserializationStream;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.DiskBlockObjectWriter;
import org.apache.spark.storage.TempLocalBlockId;
import org.apache.spark.util.SizeEstimator;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Sorts a reduce task's records by key in memory. Spark's own sorter estimates what it holds about a hundred times in each
 * partition, each time by walking over hundreds of records; with 512 partitions of some megabytes that was 29 % of a reduce task's
 * work. This one measures some tens of records, some tens of times.
 * <ol>
 * <li>Gather: at 64 records, 128 and so on, and every 4096 in the end, the last ones are measured, and memory is asked for until
 *     the next time.
 * <li>Not granted: all goes to Spark's sorter, first what was gathered; it can merge from disk.
 * <li>Granted: sort, and give out. Should another operator of the task need memory meanwhile, what is left goes to a file.
 * </ol>
 */
final class RecordSorter<K, C> extends MemoryConsumer {
  private static final int MEASURED = 64;
  private static final int MEASURE_EVERY_MAX = 1 << 12;
  private static final int PLACE_BYTES = 32; // two in an array that doubles, a key's, its first bits, and one and a half for its order, rounded up
  private static final int FILE_BUFFER = 1 << 15;

  private final TaskContext context;
  private final BlockManager blocks;
  private final SerializerInstance serializer;
  private final Thread owner = Thread.currentThread();
  private Object[] records = new Object[MEASURED];
  private int count;
  private int given;
  private int measureAt = MEASURED;
  private int measured;
  private double gatheredBytes;
  private int[] places; // of the records in their order, when they are sorted
  private File file;
  private DeserializationStream fromFile;
  private Iterator<Tuple2<Object, Object>> rest;

  /** @param serializer for what must go to a file */
  RecordSorter(TaskContext context, BlockManager blocks, SerializerInstance serializer) {
    super(context.taskMemoryManager(), MemoryMode.ON_HEAP);
    this.context = context;
    this.blocks = blocks;
    this.serializer = serializer;
  }

  /** @param spilling sorts what does not fit into memory */
  Iterator<Product2<K, C>> sort(Iterator<Product2<K, C>> from, Comparator<K> order,
      Function<Iterator<Product2<K, C>>, Iterator<Product2<K, C>>> spilling) {
    TaskCompletionListener ended = done -> release();
    context.addTaskCompletionListener(ended);
    while (from.hasNext()) {
      if (count == measureAt && !granted()) {
        freeMemory(getUsed());
        return spilling.apply(new Gathered().concat(() -> from));
      }
      if (count == records.length) {
        records = Arrays.copyOf(records, 2 * count);
      }
      records[count++] = from.next();
    }
    context.taskMetrics().incPeakExecutionMemory(getUsed());
    places = KeyOrder.of(keys(), order);
    return new Gathered();
  }

  private Object[] keys() {
    Object[] keys = new Object[count];
    for (int i = 0; i < count; i++) {
      keys[i] = this.<Product2<K, C>>as(records[i])._1();
    }
    return keys;
  }

  /** Whether there is memory for the records that are here and those until we look again. */
  private boolean granted() {
    double recordBytes = (double) SizeEstimator.estimate(Arrays.copyOfRange(records, count - MEASURED, count)) / MEASURED;
    int step = Math.min(count, MEASURE_EVERY_MAX);
    gatheredBytes += recordBytes * (count - measured);
    measured = count;
    measureAt = count + step;
    long missing = (long) (gatheredBytes + recordBytes * step) + (long) PLACE_BYTES * measureAt - getUsed();
    return missing <= 0 || acquireMemory(missing) == missing;
  }

  /** What was gathered and not given out yet: from memory, then from the file if there is one. */
  private final class Gathered extends AbstractIterator<Product2<K, C>> {
    @Override
    public boolean hasNext() {
      if (given < count || rest != null && rest.hasNext()) {
        return true;
      }
      release();
      return false;
    }

    @Override
    public Product2<K, C> next() {
      if (given < count) {
        int place = places == null ? given : places[given];
        given++;
        Object record = records[place];
        records[place] = null;
        return as(record);
      }
      if (rest == null) {
        throw new NoSuchElementException("no record after the last");
      }
      return as(rest.next());
    }
  }

  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    if (trigger == this || places == null || given == count || Thread.currentThread() != owner) {
      return 0;
    }
    Tuple2<TempLocalBlockId, File> block = blocks.diskBlockManager().createTempLocalBlock();
    file = block._2();
    try (DiskBlockObjectWriter out = blocks.getDiskWriter(block._1(), file, serializer, FILE_BUFFER, new ShuffleWriteMetrics())) {
      for (int i = given; i < count; i++) {
        Product2<K, C> record = as(records[places[i]]);
        out.write(record._1(), record._2());
      }
      out.commitAndGet();
    }
    fromFile = serializer.deserializeStream(blocks.serializerManager().wrapStream(block._1(), new FileInputStream(file)));
    rest = fromFile.asKeyValueIterator();
    context.taskMetrics().incMemoryBytesSpilled(getUsed());
    context.taskMetrics().incDiskBytesSpilled(file.length());
    long freed = getUsed();
    forget();
    return freed;
  }

  private void release() {
    forget();
    if (file != null) {
      if (fromFile != null) {
        fromFile.close();
      }
      file.delete(); // if that fails, Spark's folder for temporary files is deleted in the end
    }
    file = null;
    fromFile = null;
    rest = null;
  }

  private void forget() {
    records = new Object[0];
    places = null;
    count = 0;
    given = 0;
    freeMemory(getUsed());
  }

  /** Scala's variance and Spark's erased value types have no spelling in Java. */
  @SuppressWarnings("unchecked")
  private <T> T as(Object value) {
    return (T) value;
  }
}
