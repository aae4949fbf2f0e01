package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/**
 * The driver's log after an executor was lost, at INFO, as a user sees it: it had a line for each shuffle of the
 * session.
 */
class LossLogTest {
  private static final int OLD = 20;
  private static final int MAPS = 200;

  @Test
  void anExecutorsLossIsOneLineAboutTheShuffleThatIsUsedAgain() throws Exception {
    try (TestCluster cluster = new TestCluster(2, new SparkConf(false))) {
      cluster.awaitExecutors(2);
      List<JavaPairRDD<Integer, Integer>> old = new ArrayList<>();
      for (int shuffle = 0; shuffle < OLD; shuffle++) {
        old.add(counted(cluster, 4));
      }
      JavaPairRDD<Integer, Integer> last = counted(cluster, MAPS);
      Lines lines = new Lines();
      TestCluster.executors().get(0).destroyForcibly();
      cluster.awaitExecutors(2); // the driver has heard of the loss, and Spark has made another
      assertEquals(100, last.count());
      lines.stop();
      List<String> said = lines.said.stream().filter(line -> !line.contains("can be a home of partitions")).toList();
      assertEquals(1, said.size(), String.join("\n", said));
      int shuffle = TestCluster.shuffle(last.rdd()).shuffleId();
      assertTrue(said.get(0).matches("shuffle " + shuffle + ": executor . was lost \\(. partitions\\)\\. .* maps run again.*"), said.get(0));
      assertEquals(OLD, old.size(), "the program still holds the others");
    }
  }

  private static JavaPairRDD<Integer, Integer> counted(TestCluster cluster, int maps) {
    JavaPairRDD<Integer, Integer> sums = cluster.context.parallelize(IntStream.range(0, 1000).boxed().toList(), maps)
        .mapToPair(i -> new Tuple2<>(i % 100, i)).groupByKey(8).mapValues(values -> 1);
    assertEquals(100, sums.count());
    return sums;
  }

  /** The lines that the plugin logs in this process at INFO and above. */
  private static final class Lines extends AbstractAppender {
    private final List<String> said = new CopyOnWriteArrayList<>();
    private final Logger logger = (Logger) LogManager.getLogger(GristmillShuffleManager.class.getName());
    private final Level before = logger.getLevel();

    Lines() {
      super("lines", null, null, true, Property.EMPTY_ARRAY);
      start();
      logger.setLevel(Level.INFO);
      logger.addAppender(this);
    }

    @Override
    public void append(LogEvent event) {
      said.add(event.getMessage().getFormattedMessage());
    }

    @Override
    public void stop() {
      super.stop();
      logger.removeAppender(this);
      logger.setLevel(before);
    }
  }
}
