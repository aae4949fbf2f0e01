package org.gristmill.spark.reader;

import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.util.SizeEstimator;
import org.apache.spark.util.TaskCompletionListener;
import org.gristmill.spark.node.TaskMemory;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Sorts a reduce task's records by key in memory. Spark's own sorter estimates its memory about a hundred times in each
 * partition, each time by walking over hundreds of records; with 512 partitions of some megabytes that was 29 % of a
 * reduce task's work. This one measures some tens of records, some tens of times.
 * <ol>
 * <li>Gather: at 64 records, 128 and so on, and every 4096 in the end, the last ones are measured, and memory is asked
 *     for until the next time.
 * <li>Not granted: all goes to Spark's sorter, first what was gathered; it can merge from disk.
 * <li>Granted: sort, and give out. Should another operator of the task need memory meanwhile, what is left goes to a
 *     file.
 * </ol>
 */
public final class RecordSorter<K, C> {
  private static final int MEASURED = 64;
  private static final int MEASURE_EVERY_MAX = 1 << 12;
  private static final int PLACE_BYTES = 32; // two in an array that doubles, a key's, its first bits, and one and a half for its order, rounded up

  private final TaskContext context;
  private final TaskMemory memory;
  private final SpillFiles files;
  private final ReadMetrics metrics;
  private Object[] records = new Object[MEASURED];
  private int count;
  private int given;
  private int measureAt = MEASURED;
  private int measured;
  private double gatheredBytes;
  private int[] places; // of the records in their order, when they are sorted
  private SpillFiles.Spilled<K, C> spilled;

  public RecordSorter(TaskContext context, TaskMemory.Lender memory, SpillFiles files, ReadMetrics metrics) {
    this.context = context;
    this.memory = memory.lend(this::spill);
    this.files = files;
    this.metrics = metrics;
  }

  /** @param spilling sorts what does not fit into memory */
  public Iterator<Product2<K, C>> sort(Iterator<Product2<K, C>> from, Comparator<K> order,
      Function<Iterator<Product2<K, C>>, Iterator<Product2<K, C>>> spilling) {
    TaskCompletionListener ended = done -> release();
    context.addTaskCompletionListener(ended);
    while (from.hasNext()) {
      if (count == measureAt && !granted()) {
        memory.free(memory.used());
        return spilling.apply(new Gathered().concat(() -> from));
      }
      if (count == records.length) {
        records = Arrays.copyOf(records, 2 * count);
      }
      records[count++] = from.next();
    }
    metrics.peakMemory(memory.used());
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
    long missing = (long) (gatheredBytes + recordBytes * step) + (long) PLACE_BYTES * measureAt - memory.used();
    return missing <= 0 || memory.acquire(missing) == missing;
  }

  /** The gathered records that were not given out yet: from memory, then from the file if there is one. */
  private final class Gathered extends AbstractIterator<Product2<K, C>> {
    @Override
    public boolean hasNext() {
      if (given < count || spilled != null && spilled.records().hasNext()) {
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
      if (spilled == null) {
        throw new NoSuchElementException("no record after the last");
      }
      return spilled.records().next();
    }
  }

  private long spill() throws IOException {
    if (places == null || given == count) {
      return 0;
    }
    spilled = files.write(IntStream.range(given, count).mapToObj(i -> this.<Product2<K, C>>as(records[places[i]])).iterator());
    long freed = memory.used();
    metrics.spilled(freed, spilled.bytes());
    forget();
    return freed;
  }

  private void release() {
    forget();
    if (spilled != null) {
      spilled.delete().run();
      spilled = null;
    }
  }

  private void forget() {
    records = new Object[0];
    places = null;
    count = 0;
    given = 0;
    memory.free(memory.used());
  }

  /** Scala's variance and Spark's erased value types have no spelling in Java. */
  @SuppressWarnings("unchecked")
  private <T> T as(Object value) {
    return (T) value;
  }
}
