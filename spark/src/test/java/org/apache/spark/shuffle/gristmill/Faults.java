package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.util.CollectionAccumulator;
import org.gristmill.core.Recovery;
import org.gristmill.core.Settings;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

/**
 * Things break at seeded random moments; the answer must be the sequential one every time. One class for each way to recover
 * runs all of it, with one seed; the long suite, {@code ci/spark-faults.sh}, runs hundreds with {@code -Dgristmill.fault.runs}.
 */
@Timeout(14_400)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class Faults {
  private static final int RUNS = Integer.getInteger("gristmill.fault.runs", 1);
  private static final int FIRST_SEED = Integer.getInteger("gristmill.fault.seed", 1);
  private static final int EXECUTORS = 3;
  private static final int MAPS = 12;
  private static final int PARTITIONS = 6;
  private static final int RECORDS_PER_MAP = 2000;
  private static TestCluster cluster;
  private final Recovery recovery;

  Faults(Recovery recovery) {
    this.recovery = recovery;
  }

  @BeforeAll
  void start() {
    cluster = new TestCluster(EXECUTORS, new SparkConf(false).set("spark.gristmill.send.retryMs", "50")
        .set("spark.shuffle.io.retryWait", "200ms")
        .set(Settings.RECOVERY.key(), recovery.name().toLowerCase(Locale.ROOT))
        .set("spark.speculation.interval", "50ms").set("spark.speculation.quantile", "0.5")
        .set("spark.speculation.multiplier", "1.2").set("spark.speculation", "true")
        .set("spark.deploy.maxExecutorRetries", "-1").set("spark.excludeOnFailure.enabled", "false"));
  }

  @AfterAll
  void stop() {
    cluster.close();
  }

  private interface Fault {
    void strike(Random random) throws Exception;
  }

  /** What a map task does beside its work, chosen by seed: nothing, fail on its first attempts, or be slow. */
  private record Behaviour(long seed, int failures, int slowMs) implements Serializable {
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

  private static JavaPairRDD<Integer, Long> sums(Behaviour behaviour, int workMs) {
    return sums(behaviour, workMs, cluster.context.sc().collectionAccumulator());
  }

  /** @param runs is told the number of each map that runs, and its executor */
  private static JavaPairRDD<Integer, Long> sums(Behaviour behaviour, int workMs,
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

  private static Map<Integer, Long> expected() {
    Map<Integer, Long> sums = new TreeMap<>();
    for (int map = 0; map < MAPS; map++) {
      for (int r = 0; r < RECORDS_PER_MAP; r++) {
        sums.merge((map * 7 + r * 13) % 1000, (long) map * r, Long::sum);
      }
    }
    return sums;
  }

  private static void everySeed(long jobMs, Behaviour behaviour, Fault fault) throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      Random random = new Random(seed);
      Behaviour seeded = new Behaviour(seed, behaviour.failures, behaviour.slowMs);
      CompletableFuture<Map<Integer, Long>> job =
          CompletableFuture.supplyAsync(() -> new TreeMap<>(sums(seeded, 100).collectAsMap()));
      Thread.sleep((long) (random.nextDouble() * jobMs));
      fault.strike(random);
      assertEquals(expected(), job.get(), "seed " + seed);
    }
  }

  @Test
  void executorsKilledAtRandomMomentsDoNotChangeTheAnswer() throws Exception {
    everySeed(1500, new Behaviour(0, 0, 0), random -> {
      List<ProcessHandle> executors = TestCluster.executors();
      executors.get(random.nextInt(executors.size())).destroyForcibly();
    });
  }

  /** Stopped for a while, as a long garbage collection would: it neither sends, receives nor answers. */
  @Test
  void anExecutorThatStallsDoesNotChangeTheAnswer() throws Exception {
    everySeed(1500, new Behaviour(0, 0, 0), random -> {
      List<ProcessHandle> executors = TestCluster.executors();
      String pid = String.valueOf(executors.get(random.nextInt(executors.size())).pid());
      assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
      Thread.sleep(500 + random.nextInt(1500));
      assertEquals(0, new ProcessBuilder("kill", "-CONT", pid).start().waitFor());
    });
  }

  @Test
  void failingAndSlowAttemptsDoNotChangeTheAnswer() throws Exception {
    everySeed(0, new Behaviour(0, 2, 0), random -> {});
    everySeed(0, new Behaviour(0, 0, 1500), random -> {});
  }

  /**
   * The maps have run and everything has been delivered; then an executor dies with its partitions and the shuffle is read again.
   * Which maps run again is what the ways to recover differ in.
   */
  @Test
  void partitionsThatDiedWithTheirHomeAreThereAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      cluster.awaitExecutors(EXECUTORS); // a second home needs a second executor
      CollectionAccumulator<Tuple2<Integer, String>> runs = cluster.context.sc().collectionAccumulator();
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0, runs);
      Path file = oneOf(filesMadeBy(sums), new Random(seed));
      cluster.awaitDelivery(sums);
      List<Tuple2<Integer, String>> before = List.copyOf(runs.value());
      ProcessHandle home = TestCluster.writerOf(file);
      String executor = TestCluster.executorId(home);
      home.destroyForcibly();
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), "seed " + seed);
      Set<Integer> again = new TreeSet<>();
      runs.value().subList(before.size(), runs.value().size()).forEach(run -> again.add(run._1()));
      Set<Integer> ranThere = new TreeSet<>();
      before.stream().filter(run -> run._2().equals(executor)).forEach(run -> ranThere.add(run._1()));
      switch (recovery) {
        case RECOMPUTE -> assertEquals(MAPS, again.size(), "every map has lost something");
        case RESEND -> assertTrue(ranThere.containsAll(again), again + " ran again, of which " + ranThere + " ran on the lost one");
        case REPLICATE -> assertEquals(Set.of(), again);
      }
    }
  }

  @Test
  void aFlippedByteIsNoticedAndTheMapRunsAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      Random random = new Random(seed);
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0);
      flip(oneOf(filesMadeBy(sums), random), random);
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), "seed " + seed);
    }
  }

  private static void flip(Path file, Random random) throws IOException {
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      long at = (long) (random.nextDouble() * bytes.length());
      bytes.seek(at);
      int b = bytes.read();
      bytes.seek(at);
      bytes.write(b ^ 1 << random.nextInt(8));
    }
  }

  @Test
  void aTruncatedFileIsNoticedAndItsMapsRunAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0);
      try (RandomAccessFile bytes = new RandomAccessFile(oneOf(filesMadeBy(sums), new Random(seed)).toFile(), "rw")) {
        bytes.setLength(bytes.length() / 2);
      }
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), "seed " + seed);
    }
  }

  /** A folder turns into a file under one executor: it can store nothing new, so its partitions move to the others. */
  @Test
  void anExecutorThatCannotMakeFilesStopsBeingAHome() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      JavaPairRDD<Integer, Long> old = sums(new Behaviour(seed, 0, 0), 0);
      Path folder = oneOf(filesMadeBy(old), new Random(seed)).getParent();
      Path aside = Files.move(folder, folder.resolveSibling("aside"));
      Files.writeString(folder, "not a folder");
      long lost = cluster.coordinator().counters().homesLost();
      assertEquals(expected(), new TreeMap<>(sums(new Behaviour(seed, 0, 0), 0).collectAsMap()), "seed " + seed);
      assertTrue(cluster.coordinator().counters().homesLost() > lost);
      Files.delete(folder);
      Files.move(aside, folder);
      assertEquals(expected(), new TreeMap<>(old.collectAsMap()), "seed " + seed);
    }
  }

  /** What executors elsewhere read by its path is gone; what is written next finds a new folder. */
  @Test
  void aFolderThatIsRemovedTakesItsPartitionsWithItAndTheyAreMadeAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0);
      Path folder = oneOf(filesMadeBy(sums), new Random(seed)).getParent();
      try (Stream<Path> files = Files.walk(folder)) {
        for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), "seed " + seed);
      assertEquals(expected(), new TreeMap<>(sums(new Behaviour(seed, 0, 0), 0).collectAsMap()), "seed " + seed);
    }
  }

  /** To a process that may write no further into any file, appends fail in the middle, as on a full disk. */
  @Test
  void anExecutorWhoseDiskIsFullStopsBeingAHome() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      JavaPairRDD<Integer, Long> old = sums(new Behaviour(seed, 0, 0), 0);
      ProcessHandle home = TestCluster.writerOf(oneOf(filesMadeBy(old), new Random(seed)));
      long lost = cluster.coordinator().counters().homesLost();
      limitFileSize(home, "1000");
      assertEquals(expected(), new TreeMap<>(sums(new Behaviour(seed, 0, 0), 0).collectAsMap()), "seed " + seed);
      assertTrue(cluster.coordinator().counters().homesLost() > lost);
      limitFileSize(home, "unlimited");
      assertEquals(expected(), new TreeMap<>(old.collectAsMap()), "seed " + seed);
    }
  }

  private static void limitFileSize(ProcessHandle process, String soft) throws Exception {
    assertEquals(0, new ProcessBuilder("prlimit", "--pid", String.valueOf(process.pid()), "--fsize=" + soft + ":").start().waitFor());
  }

  /** Runs the shuffle; the store files of its homes. */
  private static List<Path> filesMadeBy(JavaPairRDD<Integer, Long> sums) throws IOException {
    List<Path> before = cluster.storeFiles();
    assertEquals(1000, sums.count());
    List<Path> files = new ArrayList<>(cluster.storeFiles());
    files.removeAll(before);
    return files;
  }

  private static Path oneOf(List<Path> files, Random random) {
    return files.get(random.nextInt(files.size()));
  }
}
