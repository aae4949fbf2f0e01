package org.apache.spark.shuffle.gristmill;

import org.apache.spark.Aggregator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.checksum.RowBasedChecksum;
import org.apache.spark.shuffle.checksum.RowBasedChecksum$;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.collection.ExternalSorter;
import org.gristmill.spark.writer.RowChecksums;
import scala.Option;
import scala.math.Ordering;

/**
 * All that differs between versions of Spark; there is one such class for each, and Maven takes the right one. Since
 * 4.1 Spark can compare checksums of rows, to find stages that are not determinate: those of one map attempt are
 * gathered here.
 */
final class SparkVersion implements RowChecksums {
  // The versions 4.x of Spark that this file is for, see SparkFit.
  static final int MINOR_MIN = 1;
  static final int MINOR_MAX = 3;

  private final RowBasedChecksum[] checksums;

  SparkVersion(ShuffleDependency<?, ?, ?> dependency) {
    checksums = dependency.rowBasedChecksums();
  }

  @Override
  public void add(int partition, Object key, Object value) {
    if (checksums.length > 0) {
      checksums[partition].update(key, value);
    }
  }

  @Override
  public long value() {
    return RowBasedChecksum$.MODULE$.getAggregatedChecksumValue(checksums);
  }

  MapStatus status(BlockManagerId location, long[] sizes, long attempt, long rows) {
    return MapStatus$.MODULE$.apply(location, sizes, attempt, rows);
  }

  static <K, C> ExternalSorter<K, Object, C> sorter(TaskContext context, Option<Aggregator<K, Object, C>> aggregator,
      Option<Ordering<K>> ordering, Serializer serializer) {
    return new ExternalSorter<>(context, aggregator, Option.empty(), ordering, serializer, new RowBasedChecksum[0]);
  }
}
