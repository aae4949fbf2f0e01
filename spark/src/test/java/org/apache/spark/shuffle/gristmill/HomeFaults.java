package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.util.CollectionAccumulator;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Faults that cost a home of partitions, or its files. One class for each way to recover runs all of them. */
abstract class HomeFaults extends AdaptivePlanFaults {
  HomeFaults(Recovery recovery) {
    super(recovery);
  }

  @Test
  void executorsKilledAtRandomMomentsDoNotChangeTheAnswer() throws Exception {
    everySeed(1500, new Behaviour(0, 0, 0), random -> {
      List<ProcessHandle> executors = TestCluster.executors();
      executors.get(random.nextInt(executors.size())).destroyForcibly();
    });
  }

  /**
   * The maps have run and everything has been delivered; then an executor dies with its partitions and the shuffle is
   * read again. Which maps run again is what the ways to recover differ in.
   */
  @Test
  void partitionsThatDiedWithTheirHomeAreThereAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      cluster.awaitExecutors(EXECUTORS); // a second home needs a second executor
      CollectionAccumulator<Tuple2<Integer, String>> runs = cluster.context.sc().collectionAccumulator();
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0, runs);
      Path file = oneOf(filesMadeBy(sums), new Random(seed));
      cluster.awaitDelivery(sums);
      cluster.context.sc().listenerBus().waitUntilEmpty(); // the driver knows the maps that have succeeded
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

  /** Files are read although their names are gone; those that are written next find a new folder. */
  @Test
  void aFolderThatIsRemovedIsMadeAgain() throws Exception {
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
}
