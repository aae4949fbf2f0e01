package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import scala.Function1;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

@Timeout(300)
class BarrierTest {
  private static final int KEYS = 10;

  private interface Partition extends Function1<Iterator<Integer>, Iterator<Integer>>, Serializable {}

  /**
   * The job hung: of a barrier stage that Spark ran again, the task that had succeeded before was taken to have nothing
   * to do, and the other one waited for it in barrier().
   */
  @Test
  void aBarrierStageThatRunsAgainRunsAllOfItsTasks(@TempDir Path folder) throws Exception {
    Path succeeded = folder.resolve("succeeded");
    String file = succeeded.toString();
    try (TestCluster cluster = new TestCluster(2)) {
      Partition failsOnce = records -> new Meeting(records, file);
      JavaRDD<Integer> numbers = cluster.context.parallelize(IntStream.range(0, 1000).boxed().toList(), 2);
      JavaPairRDD<Integer, Integer> sums = numbers.rdd().barrier().mapPartitions(failsOnce, false, ClassTag$.MODULE$.apply(Integer.class))
          .toJavaRDD().mapToPair(n -> new Tuple2<>(n % KEYS, n)).reduceByKey(Integer::sum, 4);
      TestCluster.shuffle(sums.rdd()); // registers it: what is told of tasks that succeed reaches the plugin before us
      cluster.context.sc().addSparkListener(new SparkListener() {
        @Override
        public void onTaskEnd(SparkListenerTaskEnd end) {
          if (end.taskInfo().successful()) {
            create(succeeded);
          }
        }
      });

      Map<Integer, Integer> expected = new HashMap<>();
      for (int n = 0; n < 1000; n++) {
        expected.merge(n % KEYS, n, Integer::sum);
      }
      assertEquals(expected, sums.collectAsMap());
    }
  }

  /**
   * Waits for the other tasks when the first record is asked for, as Python's functions do; then a task of the first
   * attempt fails.
   */
  private static final class Meeting extends AbstractIterator<Integer> {
    private final Iterator<Integer> records;
    private final String othersSucceeded;
    private boolean met;

    Meeting(Iterator<Integer> records, String othersSucceeded) {
      this.records = records;
      this.othersSucceeded = othersSucceeded;
    }

    @Override
    public boolean hasNext() {
      if (!met) {
        met = true;
        BarrierTaskContext task = BarrierTaskContext.get();
        task.barrier();
        if (task.stageAttemptNumber() == 0 && task.partitionId() == 1) {
          await(Path.of(othersSucceeded));
          throw new IllegalStateException("fails once, after the other task of its stage has succeeded");
        }
      }
      return records.hasNext();
    }

    @Override
    public Integer next() {
      return records.next();
    }
  }

  private static void await(Path file) {
    try {
      while (!Files.exists(file)) {
        Thread.sleep(20);
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void create(Path file) {
    try {
      if (!Files.exists(file)) {
        Files.createFile(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
