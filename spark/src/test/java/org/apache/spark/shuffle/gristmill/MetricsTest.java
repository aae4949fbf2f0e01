package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.codahale.metrics.Gauge;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.metrics.source.Source;
import org.gristmill.core.driver.Coordinator;
import org.junit.jupiter.api.Test;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** The metrics that Spark's metrics system gets. */
class MetricsTest {
  private static final int MAPS = 40;

  /** The first attempt of every fourth map writes all its records and then fails. */
  @Test
  void bytesSentReadAndIgnoredAreCounted() throws Exception {
    try (TestCluster cluster = new TestCluster("local[2,4]", new SparkConf(false))) {
      TaskMetricsListener tasks = new TaskMetricsListener();
      cluster.context.sc().addSparkListener(tasks);
      long groups = cluster.context.parallelize(IntStream.range(0, MAPS).boxed().toList(), MAPS).flatMapToPair(map -> {
        List<Tuple2<Integer, String>> records = new ArrayList<>();
        for (int r = 0; r < 3000; r++) {
          records.add(new Tuple2<>(r % 100, "record " + r));
        }
        return new FailsAtItsEnd<>(records.iterator(), map % 4 == 0 && TaskContext.get().attemptNumber() == 0);
      }).groupByKey(5).count();
      cluster.context.sc().listenerBus().waitUntilEmpty();
      assertEquals(100, groups);
      assertEquals(tasks.localBytes.get(), number("localReadBytes"));
      assertEquals(0, number("remoteReadBytes"));
      assertTrue(number("loserBytes") > 0);
      assertEquals(number("sentBytes"), number("localReadBytes") + number("loserBytes"));
      assertEquals(0, number("poolBytes"));
      assertEquals(0, number("droppedSegments"));
    }
  }

  /** Partition p has a share of the records that goes with 1 / (p + 1). */
  @Test
  void howFarPredictionAndPlacementWereOffIsSaid() throws Exception {
    try (TestCluster cluster = new TestCluster(2, new SparkConf(false))) {
      while (cluster.coordinator().executors().size() < 2) {
        Thread.sleep(10);
      }
      long records = cluster.context.parallelize(IntStream.range(0, MAPS).boxed().toList(), MAPS).flatMapToPair(map -> {
        List<Tuple2<Integer, Integer>> zipf = new ArrayList<>();
        for (int p = 0; p < 64; p++) {
          for (int r = 0; r < (2000 + 50 * (map * 7 % 13)) / (p + 1); r++) {
            zipf.add(new Tuple2<>(p, map * 1_000_003 ^ r * 7919));
          }
        }
        return zipf.iterator();
      }).groupByKey(64).values().map(MetricsTest::size).reduce(Integer::sum);
      assertTrue(records > MAPS * 2000);
      Coordinator.Counters counters = cluster.coordinator().counters();
      assertEquals(1, counters.shufflesWritten());
      assertTrue(counters.predictionErrorPerMille() <= 100, counters.toString());
      assertTrue(counters.fullestHomePerMille() >= 1000, counters.toString());
      assertTrue(counters.roundRobinPerMille() > 1100, counters.toString());
    }
  }

  private static int size(Iterable<?> values) {
    int n = 0;
    for (Object ignored : values) {
      n++;
    }
    return n;
  }

  /** The source of the executor. In local mode the driver has one of the same name. */
  private static long number(String name) {
    for (Source source : CollectionConverters.asJava(SparkEnv.get().metricsSystem().getSourcesByName("gristmill"))) {
      Gauge<?> gauge = source.metricRegistry().getGauges().get(name);
      if (gauge != null) {
        return (Long) gauge.getValue();
      }
    }
    throw new IllegalStateException("no metric " + name);
  }

  private record FailsAtItsEnd<T>(Iterator<T> records, boolean fails) implements Iterator<T> {
    @Override
    public boolean hasNext() {
      if (!records.hasNext() && fails) {
        throw new IllegalStateException("this attempt fails on purpose");
      }
      return records.hasNext();
    }

    @Override
    public T next() {
      return records.next();
    }
  }
}
