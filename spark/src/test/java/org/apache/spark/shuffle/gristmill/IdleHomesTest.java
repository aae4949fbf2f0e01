package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.scheduler.dynalloc.ExecutorMonitor;
import org.junit.jupiter.api.Test;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Dynamic allocation with shuffle tracking, as Spark's own monitor of idle executors sees it. */
class IdleHomesTest {
  private static final long END_OF_TIME = Long.MAX_VALUE - 1; // Spark's "never" is one above

  /**
   * Spark knew that an executor kept data of a shuffle only if it had run maps of it. An idle executor that held
   * partitions and had run none was removed between two jobs, and all maps ran again.
   */
  @Test
  void anIdleExecutorThatHoldsPartitionsIsNotRemovedThoughItRanNoMap() throws Exception {
    try (TestCluster cluster = new TestCluster(3, new SparkConf(false).set("spark.dynamicAllocation.enabled", "true")
        .set("spark.dynamicAllocation.minExecutors", "3").set("spark.executor.cores", "1"))) {
      cluster.awaitExecutors(3);
      // One map and two partitions: two executors hold one each, of which one at least ran no map, and the third has
      // nothing.
      JavaPairRDD<Integer, Iterable<Integer>> groups = cluster.context.parallelize(List.of(1), 1)
          .flatMapToPair(one -> IntStream.range(0, 1000).mapToObj(i -> new Tuple2<>(i % 10, i)).iterator()).groupByKey(2);
      assertEquals(10, groups.count());
      cluster.context.sc().listenerBus().waitUntilEmpty();
      int shuffle = TestCluster.shuffle(groups.rdd()).shuffleId();
      Set<String> homes = new TreeSet<>(List.of(cluster.coordinator().placed(shuffle).plan().homes()));
      assertEquals(2, homes.size());
      ExecutorMonitor monitor = cluster.context.sc().executorAllocationManager().get().executorMonitor();
      Set<String> removable = new TreeSet<>(CollectionConverters.asJava(monitor.timedOutExecutors(END_OF_TIME)));
      assertFalse(removable.removeAll(homes), "of the homes " + homes + " Spark would remove some; left are " + removable);
    }
  }
}
