package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Dynamic allocation with shuffle tracking. */
class IdleHomesTest {
  private static final int IDLE_SECONDS = 3;

  /**
   * Spark knew that an executor kept data of a shuffle only if it had run maps of it. An idle executor that held partitions and had run none was
   * removed between two jobs, and all maps ran again.
   */
  @Test
  void anIdleExecutorThatHoldsPartitionsStaysThoughItRanNoMap() throws Exception {
    try (TestCluster cluster = new TestCluster(3, new SparkConf(false).set("spark.dynamicAllocation.enabled", "true")
        .set("spark.dynamicAllocation.minExecutors", "1").set("spark.dynamicAllocation.initialExecutors", "3")
        .set("spark.dynamicAllocation.executorIdleTimeout", IDLE_SECONDS + "s"))) {
      LongAccumulator runs = cluster.context.sc().longAccumulator();
      cluster.awaitExecutors(3);
      // One map, two partitions, three executors: at least one executor holds a partition and ran no map, and one has nothing at all.
      JavaPairRDD<Integer, Integer> sums = cluster.context.parallelize(List.of(1), 1).flatMapToPair(one -> {
        runs.add(1);
        return IntStream.range(0, 1000).mapToObj(i -> new Tuple2<>(i % 10, i)).iterator();
      }).groupByKey(2).mapValues(values -> {
        int sum = 0;
        for (int value : values) {
          sum += value;
        }
        return sum;
      });
      Map<Integer, Integer> expected = new TreeMap<>();
      for (int i = 0; i < 1000; i++) {
        expected.merge(i % 10, i, Integer::sum);
      }
      assertEquals(expected, new TreeMap<>(sums.collectAsMap()));
      while (cluster.coordinator().executors().size() > 2) {
        Thread.sleep(100); // until Spark has removed the executor that has nothing
      }
      Thread.sleep(2000L * IDLE_SECONDS); // it removes those that it does not need at intervals far below that
      assertEquals(expected, new TreeMap<>(sums.collectAsMap()));
      assertEquals(1, runs.value());
    }
  }
}
