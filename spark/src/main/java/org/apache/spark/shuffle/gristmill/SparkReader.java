package org.apache.spark.shuffle.gristmill;

import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.storage.BlockManager;
import org.gristmill.spark.reader.ReadMetrics;
import org.gristmill.spark.reader.RecordIterator;
import org.gristmill.spark.reader.RecordSorter;
import org.gristmill.spark.reader.SpillFiles;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * The records of a reduce task's partitions, aggregated and sorted as the shuffle asks, as Spark's own reader does it.
 */
record SparkReader<K, V, C>(ShuffleDependency<K, V, C> dependency, RecordIterator records, TaskContext context, BlockManager blocks,
    Metrics metrics) implements ShuffleReader<K, C> {
  @Override
  public Iterator<Product2<K, C>> read() {
    Iterator<Product2<K, C>> result;
    if (dependency.keyOrdering().isDefined() && dependency.aggregator().isEmpty()) {
      SpillFiles files = new SpillFile(blocks, dependency.serializer().newInstance());
      result = new RecordSorter<K, C>(context, SparkTaskMemory.of(context), files, metrics)
          .sort(interruptible(records), dependency.keyOrdering().get(), rest -> sparkSorted(as(rest)));
    } else if (dependency.keyOrdering().isDefined()) {
      result = sparkSorted(interruptible(records));
    } else if (dependency.aggregator().isDefined()) {
      Aggregator<K, V, C> aggregator = dependency.aggregator().get();
      result = as(dependency.mapSideCombine()
          ? aggregator.combineCombinersByKey(interruptible(records), context)
          : aggregator.combineValuesByKey(interruptible(records), context));
    } else {
      return interruptible(records);
    }
    return interruptible(result); // aggregator and sorter have used up the first one
  }

  private Iterator<Product2<K, C>> sparkSorted(Iterator<Product2<K, Object>> unsorted) {
    return SparkVersion.sorter(context, sortAggregator(), dependency.keyOrdering(), dependency.serializer())
        .insertAllAndUpdateMetrics(unsorted);
  }

  /** How the sorter merges values of one key: as the shuffle says, or combiners if maps have combined already. */
  private Option<Aggregator<K, Object, C>> sortAggregator() {
    Option<Aggregator<K, V, C>> aggregator = dependency.aggregator();
    if (aggregator.isDefined() && dependency.mapSideCombine()) {
      return Option.apply(as(new Aggregator<K, C, C>(c -> c, aggregator.get().mergeCombiners(),
          aggregator.get().mergeCombiners())));
    }
    return as(aggregator);
  }

  private <T> Iterator<T> interruptible(Iterator<?> iterator) {
    return new InterruptibleIterator<>(context, as(iterator));
  }

  /** The numbers of a reduce task, where Spark keeps them. */
  record Metrics(ShuffleReadMetricsReporter reporter, TaskContext context) implements ReadMetrics {
    @Override
    public void fetchedHere(long bytes) {
      reporter.incLocalBlocksFetched(1);
      reporter.incLocalBytesRead(bytes);
    }

    @Override
    public void fetchedElsewhere(long bytes) {
      reporter.incRemoteBlocksFetched(1);
      reporter.incRemoteBytesRead(bytes);
    }

    @Override
    public void waited(long millis) {
      reporter.incFetchWaitTime(millis);
    }

    @Override
    public void recordRead() {
      reporter.incRecordsRead(1);
    }

    @Override
    public void finished() {
      context.taskMetrics().mergeShuffleReadMetrics();
    }

    @Override
    public void peakMemory(long bytes) {
      context.taskMetrics().incPeakExecutionMemory(bytes);
    }

    @Override
    public void spilled(long memoryBytes, long fileBytes) {
      context.taskMetrics().incMemoryBytesSpilled(memoryBytes);
      context.taskMetrics().incDiskBytesSpilled(fileBytes);
    }
  }

  /** Scala's variance and Spark's erased value types have no spelling in Java. */
  @SuppressWarnings("unchecked")
  private static <T> T as(Object value) {
    return (T) value;
  }
}
