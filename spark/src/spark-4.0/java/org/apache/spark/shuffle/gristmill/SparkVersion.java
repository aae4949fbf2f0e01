package org.apache.spark.shuffle.gristmill;

import org.apache.spark.Aggregator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.collection.ExternalSorter;
import org.gristmill.spark.writer.RowChecksums;
import scala.Option;
import scala.math.Ordering;

/** All that differs between versions of Spark: up to 4.0 there are no checksums of rows. */
final class SparkVersion implements RowChecksums {
  // The versions 4.x of Spark that this file is for, see SparkFit.
  static final int MINOR_MIN = 0;
  static final int MINOR_MAX = 0;

  SparkVersion(ShuffleDependency<?, ?, ?> dependency) {}

  @Override
  public void add(int partition, Object key, Object value) {}

  @Override
  public long value() {
    return 0;
  }

  MapStatus status(BlockManagerId location, long[] sizes, long attempt, long rows) {
    return MapStatus$.MODULE$.apply(location, sizes, attempt);
  }

  static <K, C> ExternalSorter<K, Object, C> sorter(TaskContext context, Option<Aggregator<K, Object, C>> aggregator,
      Option<Ordering<K>> ordering, Serializer serializer) {
    return new ExternalSorter<>(context, aggregator, Option.empty(), ordering, serializer);
  }
}
