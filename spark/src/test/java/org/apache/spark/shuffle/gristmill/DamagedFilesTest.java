package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

/** Files of all homes are damaged, and Spark gives a stage the four attempts that it gives by default. */
@Timeout(600)
class DamagedFilesTest {
  private static final int MAPS = 12;
  private static final int PARTITIONS = 8;
  private static final int RECORDS = 48_000;
  private static TestCluster cluster;

  private interface Damage {
    void strike(Path file) throws Exception;
  }

  @BeforeAll
  static void start() {
    cluster = new TestCluster(2, new SparkConf(false).set("spark.stage.maxConsecutiveAttempts", "4"));
  }

  @AfterAll
  static void stop() {
    cluster.close();
  }

  /**
   * Runs a job twice, and between that damages all files that it has made. {@code readers} tasks read its partitions.
   * The number of maps that ran again.
   */
  private static long mapsAfter(int readers, Damage damage) throws Exception {
    List<Path> before = cluster.storeFiles();
    LongAccumulator maps = cluster.context.sc().longAccumulator();
    JavaPairRDD<Integer, Long> sums = cluster.context.parallelize(IntStream.range(0, RECORDS).boxed().toList(), MAPS)
        .mapPartitionsToPair(numbers -> {
          maps.add(1);
          List<Tuple2<Integer, Long>> pairs = new ArrayList<>();
          numbers.forEachRemaining(i -> pairs.add(new Tuple2<>(i % 1000, (long) i)));
          return pairs.iterator();
        }).groupByKey(PARTITIONS).mapValues(values -> {
          long sum = 0;
          for (long value : values) {
            sum += value;
          }
          return sum;
        }).coalesce(readers);
    Map<Integer, Long> expected = IntStream.range(0, RECORDS).boxed()
        .collect(Collectors.groupingBy(i -> i % 1000, TreeMap::new, Collectors.summingLong(i -> i)));
    assertEquals(expected, new TreeMap<>(sums.collectAsMap()));
    long once = maps.value();
    cluster.awaitDelivery(sums);
    List<Path> files = new ArrayList<>(cluster.storeFiles());
    files.removeAll(before);
    assertFalse(files.isEmpty());
    for (Path file : files) {
      damage.strike(file);
    }
    assertEquals(expected, new TreeMap<>(sums.collectAsMap()));
    return maps.value() - once;
  }

  private static void flip(Path file) throws Exception {
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      for (long at = 50; at < bytes.length(); at += 700) {
        bytes.seek(at);
        int old = bytes.read();
        bytes.seek(at);
        bytes.write(old ^ 0x55);
      }
    }
  }

  /** Each attempt found one damaged segment for each task that read, and the fourth was the last. */
  @Test
  void filesThatAreDamagedThroughoutAreMadeAgain() throws Exception {
    mapsAfter(PARTITIONS, DamagedFilesTest::flip);
  }

  /** One task read all partitions, and found two damaged segments of one home and then two of the other. */
  @Test
  void damageThatOneTaskFindsPieceByPieceEndsNoJob() throws Exception {
    mapsAfter(1, DamagedFilesTest::flip);
  }

  @Test
  void filesThatAreCutAreMadeAgain() throws Exception {
    mapsAfter(PARTITIONS, file -> {
      try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
        bytes.setLength(bytes.length() / 2);
      }
    });
  }

  /** A cleaner of temporary folders had deleted the files of a long application; the job was aborted. */
  @Test
  void filesThatAreDeletedAreReadAllTheSame() throws Exception {
    assertEquals(0, mapsAfter(PARTITIONS, Files::delete));
  }
}
