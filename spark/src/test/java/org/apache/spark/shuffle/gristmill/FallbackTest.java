package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.gristmill.core.Settings;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Each reason to leave a shuffle to Spark, and that such a shuffle works. */
class FallbackTest {
  private static JavaSparkContext context;
  private static ShuffleDependency<?, ?, ?> dependency;

  @BeforeAll
  static void start() {
    context = new JavaSparkContext(new SparkConf(false).setMaster("local[2]").setAppName("fallback")
        .set("spark.ui.enabled", "false").set("spark.shuffle.manager", GristmillShuffleManager.class.getName()));
    JavaPairRDD<Integer, Integer> pairs =
        context.parallelize(IntStream.range(0, 1000).boxed().toList(), 10).mapToPair(i -> new Tuple2<>(i % 10, i));
    dependency = TestCluster.shuffle(pairs.groupByKey(10).rdd());
  }

  @AfterAll
  static void stop() {
    context.close();
  }

  private static Optional<String> reason(boolean oneProcess, Map<String, String> set) {
    SparkConf conf = new SparkConf(false);
    set.forEach(conf::set);
    return FallbackReason.firstFor(conf, new Settings(e -> conf.get(e.key(), null)), dependency, oneProcess);
  }

  @Test
  void nothingFallsBackWithoutAReason() {
    assertEquals(Optional.empty(), reason(false, Map.of()));
  }

  @Test
  void settingsThatCannotBeHonouredAreNamed() {
    for (String setting : List.of("spark.shuffle.service.enabled", "spark.shuffle.push.enabled",
        "spark.shuffle.useOldFetchProtocol", "spark.decommission.enabled")) {
      assertTrue(reason(false, Map.of(setting, "true")).orElseThrow().contains(setting));
      IllegalStateException e = assertThrows(IllegalStateException.class,
          () -> reason(false, Map.of(setting, "true", "spark.gristmill.fallback", "false")));
      assertTrue(e.getMessage().contains(setting));
    }
  }

  @Test
  void shufflesWithNothingToGainAreLeftToSparkUnlessToldOtherwise() {
    assertTrue(reason(true, Map.of()).orElseThrow().contains("one process"));
    assertTrue(reason(false, Map.of("spark.gristmill.fallback.blocksMin", "101")).orElseThrow().contains("100 blocks"));
    assertFalse(reason(true, Map.of("spark.gristmill.fallback", "false")).isPresent());
  }

  @Test
  void aShuffleThatFellBackGivesItsAnswer() {
    assertFalse(dependency.shuffleHandle() instanceof GristmillShuffleHandle<?, ?, ?>);
    long sum = context.parallelize(IntStream.range(0, 1000).boxed().toList(), 10).mapToPair(i -> new Tuple2<>(i % 10, 1L))
        .reduceByKey(Long::sum).values().reduce(Long::sum);
    assertEquals(1000, sum);
  }
}
