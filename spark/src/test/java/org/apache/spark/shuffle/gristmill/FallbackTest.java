package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.gristmill.core.plan.Settings;
import org.gristmill.spark.node.FallbackLog;
import org.gristmill.spark.node.FallbackReason;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.mockito.Mockito;
import org.slf4j.Logger;
import scala.Tuple2;

/** Each reason to leave a shuffle to Spark, and that such a shuffle works. */
class FallbackTest {
  private static JavaSparkContext context;
  private static ShuffleDependency<?, ?, ?> dependency;

  @BeforeAll
  static void start() {
    context = new JavaSparkContext(new SparkConf(false).setMaster("local[2]").setAppName("fallback")
        .set("spark.ui.enabled", "false").set("spark.shuffle.manager", GristmillShuffleManager.class.getName()));
    JavaPairRDD<Integer, Integer> pairs = context.parallelize(IntStream.range(0, 1000).boxed().toList(), 10).mapToPair(i -> new Tuple2<>(i % 10, i));
    dependency = TestCluster.shuffle(pairs.groupByKey(10).rdd());
  }

  @AfterAll
  static void stop() {
    context.close();
  }

  private static Optional<FallbackReason.Found> reason(boolean oneProcess, Map<String, String> set) {
    SparkConf conf = new SparkConf(false);
    set.forEach(conf::set);
    return FallbackReason.firstFor(conf, new Settings(key -> conf.get(key, null)), dependency, oneProcess, () -> null);
  }

  @Test
  void nothingFallsBackWithoutAReason() {
    assertEquals(Optional.empty(), reason(false, Map.of()));
  }

  @Test
  void settingsThatCannotBeHonouredAreNamed() {
    for (String setting : List.of("spark.shuffle.service.enabled", "spark.shuffle.push.enabled",
        "spark.shuffle.useOldFetchProtocol")) {
      assertTrue(reason(false, Map.of(setting, "true")).orElseThrow().sentence().contains(setting));
      IllegalStateException e = assertThrows(IllegalStateException.class,
          () -> reason(false, Map.of(setting, "true", "spark.gristmill.fallback", "false")));
      assertTrue(e.getMessage().contains(setting));
    }
  }

  /** A plugin that keeps shuffle files on remote storage was set, and the files went to local disks without a word. */
  @Test
  void aPlaceForShuffleFilesThatTheUserHasChosenIsAReason() {
    for (Map<String, String> chosen : List.of(Map.of("spark.shuffle.sort.io.plugin.class", "com.example.RemoteShuffleDataIO"),
        Map.of("spark.storage.decommission.fallbackStorage.path", "s3a://bucket/", "spark.decommission.enabled", "true"))) {
      String sentence = reason(false, chosen).orElseThrow().sentence();
      assertTrue(sentence.contains("spark.") && sentence.contains("set"), sentence);
      Map<String, String> insisted = new HashMap<>(chosen);
      insisted.put("spark.gristmill.fallback", "false");
      assertThrows(IllegalStateException.class, () -> reason(false, insisted));
    }
    assertTrue(reason(false, Map.of("spark.shuffle.sort.io.plugin.class", "com.example.RemoteShuffleDataIO")).orElseThrow().sentence()
        .contains("com.example.RemoteShuffleDataIO"));
  }

  @Test
  void sparksOwnPlaceForShuffleFilesIsNoReason() {
    assertEquals(Optional.empty(), reason(false, Map.of("spark.shuffle.sort.io.plugin.class",
        "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO", "spark.storage.decommission.fallbackStorage.path", "s3a://bucket/")));
  }

  /** With spark.kryo.registrationRequired nothing could be sent to another executor, and jobs were aborted. */
  @Test
  void aMessageThatSparkCannotSerialiseIsAReason() {
    String error = "Class is not registered: org.apache.spark.network.netty.BlockReplicationMetadata";
    SparkConf conf = new SparkConf(false);
    Settings settings = new Settings(key -> conf.get(key, null));
    String sentence = FallbackReason.firstFor(conf, settings, dependency, false, () -> error).orElseThrow().sentence();
    assertTrue(sentence.contains(error) && sentence.contains("spark.kryo.classesToRegister"), sentence);
    assertFalse(FallbackReason.firstFor(conf, settings, dependency, true, () -> error).orElseThrow().sentence().contains(error));
  }

  @Test
  void shufflesWithNothingToGainAreLeftToSparkUnlessToldOtherwise() {
    assertTrue(reason(true, Map.of()).orElseThrow().sentence().contains("one process"));
    assertTrue(reason(false, Map.of("spark.gristmill.fallback.blocksMin", "101")).orElseThrow().sentence().contains("100 blocks"));
    assertFalse(reason(true, Map.of("spark.gristmill.fallback", "false")).isPresent());
  }

  @Test
  void aShuffleThatFellBackGivesItsAnswer() {
    assertFalse(dependency.shuffleHandle() instanceof GristmillShuffleHandle<?, ?, ?>);
    long sum = context.parallelize(IntStream.range(0, 1000).boxed().toList(), 10).mapToPair(i -> new Tuple2<>(i % 10, 1L))
        .reduceByKey(Long::sum).values().reduce(Long::sum);
    assertEquals(1000, sum);
  }

  /** New users tried {@code local[*]} and measured Spark's own shuffle without knowing it. */
  @Test
  void oneLineSaysThatNoShuffleIsOursAsSoonAsThatIsSure() {
    Logger log = Mockito.mock(Logger.class);
    FallbackLog always = new FallbackLog(log);
    always.fellBack(0, reason(true, Map.of()).orElseThrow());
    always.fellBack(1, reason(true, Map.of()).orElseThrow());
    always.applicationEnds();
    Mockito.verify(log, Mockito.times(1)).warn(Mockito.contains("not active"), Mockito.contains("local-cluster[2,1,1024]"));
    Mockito.verify(log, Mockito.never()).warn(Mockito.anyString(), Mockito.<Object>any(), Mockito.<Object>any());
  }

  @Test
  void ifSingleShufflesAreTooSmallTheLineComesAtTheEnd() {
    Logger log = Mockito.mock(Logger.class);
    FallbackReason.Found small = reason(false, Map.of("spark.gristmill.fallback.blocksMin", "101")).orElseThrow();
    FallbackLog none = new FallbackLog(log);
    none.fellBack(0, small);
    none.fellBack(1, small);
    Mockito.verify(log, Mockito.never()).warn(Mockito.anyString(), Mockito.<Object>any());
    none.applicationEnds();
    Mockito.verify(log, Mockito.times(1)).warn(Mockito.contains("was not active"), Mockito.eq(2), Mockito.contains("blocksMin"));
  }

  @Test
  void anApplicationWithAShuffleOfOursSaysSoOnceAndDoesNotWarn() {
    Logger log = Mockito.mock(Logger.class);
    FallbackLog some = new FallbackLog(log);
    some.fellBack(0, reason(false, Map.of("spark.gristmill.fallback.blocksMin", "101")).orElseThrow());
    some.ours(1);
    some.ours(2);
    some.applicationEnds();
    Mockito.verify(log, Mockito.times(1)).info(Mockito.contains("Gristmill is active"), Mockito.<Object>any());
    Mockito.verify(log, Mockito.never()).warn(Mockito.anyString(), Mockito.<Object>any(), Mockito.<Object>any());
  }
}
