package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.util.CollectionAccumulator;
import org.gristmill.core.plan.Recovery;
import org.gristmill.core.plan.Settings;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

/**
 * Things break at seeded random moments; the answer must be the sequential one every time. {@code mvn verify} runs one
 * seed; the long suite, {@code ci/spark-faults.sh}, runs hundreds with {@code -Dgristmill.fault.runs}.
 */
@Timeout(14_400)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class Faults {
  static final int RUNS = Integer.getInteger("gristmill.fault.runs", 1);
  static final int FIRST_SEED = Integer.getInteger("gristmill.fault.seed", 1);
  static final int EXECUTORS = 3;
  static final int MAPS = 12;
  private static final int PARTITIONS = 6;
  private static final int RECORDS_PER_MAP = 2000;
  static TestCluster cluster;
  final Recovery recovery;

  Faults(Recovery recovery) {
    this.recovery = recovery;
  }

  @BeforeAll
  void start() {
    cluster = new TestCluster(EXECUTORS, settings());
  }

  SparkConf settings() {
    return new SparkConf(false).set("spark.gristmill.send.retry", "50ms")
        .set("spark.shuffle.io.retryWait", "200ms")
        .set(Settings.RECOVERY.key(), recovery.name().toLowerCase(Locale.ROOT))
        .set("spark.speculation.interval", "50ms").set("spark.speculation.quantile", "0.5")
        .set("spark.speculation.multiplier", "1.2").set("spark.speculation", "true")
        .set("spark.deploy.maxExecutorRetries", "-1").set("spark.excludeOnFailure.enabled", "false");
  }

  @AfterAll
  void stop() {
    cluster.close();
  }

  interface Fault {
    void strike(Random random) throws Exception;
  }

  /** The behaviour of map tasks, chosen by seed: normal, failing on the first attempts, or slow. */
  record Behaviour(long seed, int failures, int slowMs) implements Serializable {
    void apply(int map, int record) throws InterruptedException {
      boolean chosen = new Random(seed * 31 + map).nextInt(3) == 0;
      if (chosen && record == RECORDS_PER_MAP / 2) {
        if (TaskContext.get().attemptNumber() < failures) {
          throw new IllegalStateException("this attempt fails on purpose");
        }
        if (TaskContext.get().attemptNumber() == 0) {
          Thread.sleep(slowMs);
        }
      }
    }
  }

  static JavaPairRDD<Integer, Long> sums(Behaviour behaviour, int workMs) {
    return sums(behaviour, workMs, cluster.context.sc().collectionAccumulator());
  }

  /** @param runs is told the number of each map that runs, and its executor */
  static JavaPairRDD<Integer, Long> sums(Behaviour behaviour, int workMs,
      CollectionAccumulator<Tuple2<Integer, String>> runs) {
    List<Integer> maps = new ArrayList<>();
    for (int m = 0; m < MAPS; m++) {
      maps.add(m);
    }
    return cluster.context.parallelize(maps, MAPS).flatMapToPair(map -> {
      runs.add(new Tuple2<>(map, SparkEnv.get().executorId()));
      List<Tuple2<Integer, Long>> records = new ArrayList<>();
      for (int r = 0; r < RECORDS_PER_MAP; r++) {
        behaviour.apply(map, r);
        records.add(new Tuple2<>((map * 7 + r * 13) % 1000, (long) map * r));
      }
      Thread.sleep(workMs);
      return records.iterator();
    }).groupByKey(PARTITIONS).mapValues(values -> {
      long sum = 0;
      for (long value : values) {
        sum += value;
      }
      return sum;
    });
  }

  static Map<Integer, Long> expected() {
    Map<Integer, Long> sums = new TreeMap<>();
    for (int map = 0; map < MAPS; map++) {
      for (int r = 0; r < RECORDS_PER_MAP; r++) {
        sums.merge((map * 7 + r * 13) % 1000, (long) map * r, Long::sum);
      }
    }
    return sums;
  }

  static void everySeed(long jobMs, Behaviour behaviour, Fault fault) throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      Random random = new Random(seed);
      Behaviour seeded = new Behaviour(seed, behaviour.failures, behaviour.slowMs);
      CompletableFuture<Map<Integer, Long>> job = CompletableFuture.supplyAsync(() -> new TreeMap<>(sums(seeded, 100).collectAsMap()));
      Thread.sleep((long) (random.nextDouble() * jobMs));
      fault.strike(random);
      assertEquals(expected(), job.get(), "seed " + seed);
    }
  }

  /** Runs the shuffle; the store files of its homes. */
  static List<Path> filesMadeBy(JavaPairRDD<Integer, Long> sums) throws IOException {
    List<Path> before = cluster.storeFiles();
    assertEquals(1000, sums.count());
    List<Path> files = new ArrayList<>(cluster.storeFiles());
    files.removeAll(before);
    return files;
  }

  static Path oneOf(List<Path> files, Random random) {
    return files.get(random.nextInt(files.size()));
  }
}
