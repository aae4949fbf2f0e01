package org.gristmill.spark.writer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.spark.HashPartitioner;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Digest.Change;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/**
 * A map that salts its rows with seeded random numbers writes as many rows into each partition as before when it runs
 * again, but other ones, if its input came in another order. Reading partitions of both runs would lose rows and double
 * others.
 */
class DigestSumsTest {
  private static final int CASES = 20_000;
  private final SerializerInstance serializer = new JavaSerializer(new SparkConf(false)).newInstance();

  /** A row of a map: which input it was made of, a salt, and a sum whose last digits depend on an order. */
  private record Row(int id, int salt, double sum) {
    int partition(int partitions) {
      return salt % partitions;
    }
  }

  /**
   * As Spark lays rows out: how many bytes; null bits; the columns, of which the last one points to a text; that text.
   */
  private static byte[] bytes(long... columns) {
    byte[] text = ("name " + columns[0]).getBytes(StandardCharsets.UTF_8);
    int fixed = 8 + 8 * (columns.length + 1);
    int length = fixed + (text.length + 7) / 8 * 8;
    ByteBuffer row = ByteBuffer.allocate(4 + length).putInt(length).order(ByteOrder.nativeOrder()).putLong(0);
    Arrays.stream(columns).forEach(row::putLong);
    return row.putLong((long) fixed << 32 | text.length).put(text).array();
  }

  private static void addRow(DigestSums sums, int partition, long... columns) {
    byte[] row = bytes(columns);
    sums.addRow(partition, partition, row, 0, row.length, 8 + 8 * (columns.length + 1));
  }

  private static DigestSums sums() {
    return new DigestSums(new Partitioner() { // as SQL's: the key is the partition
      @Override
      public int numPartitions() {
        return 6;
      }

      @Override
      public int getPartition(Object key) {
        return (Integer) key;
      }
    });
  }

  private static Digest digest(List<Row> rows, int partitions) {
    DigestSums sums = sums();
    rows.forEach(row -> addRow(sums, row.partition(partitions), row.id, row.salt, Double.doubleToLongBits(row.sum)));
    return sums.digest(0);
  }

  /**
   * The model: a partition has other rows than before, so reading this one of one attempt and others of the other is
   * wrong.
   */
  private static boolean mixingIsWrong(List<Row> before, List<Row> after, int partitions) {
    for (int p = 0; p < partitions; p++) {
      int partition = p;
      List<Integer> was = before.stream().filter(r -> r.partition(partitions) == partition).map(Row::id).sorted().toList();
      List<Integer> is = after.stream().filter(r -> r.partition(partitions) == partition).map(Row::id).sorted().toList();
      if (!was.equals(is)) {
        return true;
      }
    }
    return false;
  }

  @Test
  void rowsThatHaveMovedBetweenPartitionsAreNeverTakenForTheSame() {
    int wrong = 0;
    int tolerated = 0;
    for (int seed = 0; seed < CASES; seed++) {
      Random random = new Random(seed);
      int partitions = 2 + random.nextInt(5);
      int rows = 1 + random.nextInt(12);
      boolean drawsAnew = random.nextBoolean();
      boolean noise = random.nextBoolean();
      List<Row> before = new ArrayList<>();
      for (int i = 0; i < rows; i++) {
        before.add(new Row(random.nextInt(20), random.nextInt(1000), random.nextDouble()));
      }
      List<Integer> salts = new ArrayList<>(before.stream().map(Row::salt).toList()); // in a fixed sequence, for rows in another order
      Collections.shuffle(salts, random);
      List<Row> after = new ArrayList<>();
      for (int i = 0; i < rows; i++) {
        Row row = before.get(i);
        after.add(new Row(row.id, drawsAnew ? random.nextInt(1000) : salts.get(i), noise ? Math.nextUp(row.sum) : row.sum));
      }
      Change change = digest(after, partitions).since(digest(before, partitions), partitions);
      if (mixingIsWrong(before, after, partitions)) {
        wrong++;
        assertEquals(Change.KEYS, change, "seed " + seed + ": " + before + " then " + after);
      } else {
        tolerated += change == Change.KEYS ? 0 : 1;
      }
    }
    assertTrue(wrong > CASES / 2 && tolerated > CASES / 20, wrong + " " + tolerated);
  }

  /**
   * {@code groupBy(k, salt)} with salts drawn anew: the same keys everywhere, and parts of the sums in other
   * partitions.
   */
  @Test
  void partsOfSumsThatHaveMovedBetweenPartitionsAreNeverTakenForTheSame() {
    int wrong = 0;
    for (int seed = 0; seed < CASES / 10; seed++) {
      Random random = new Random(seed);
      boolean doubles = random.nextBoolean();
      int partitions = 2 + random.nextInt(5);
      long[] values = random.longs(200, 1, 1000).toArray();
      Map<Integer, Double> before = saltedSums(values, random);
      Map<Integer, Double> after = saltedSums(values, random);
      Change change = digest(after, partitions, doubles).since(digest(before, partitions, doubles), partitions);
      if (!perPartition(before, partitions).equals(perPartition(after, partitions))) {
        wrong++;
        assertEquals(Change.KEYS, change, "seed " + seed);
      }
    }
    assertTrue(wrong > CASES / 20, wrong + " cases");
  }

  private static Map<Integer, Double> saltedSums(long[] values, Random random) {
    Map<Integer, Double> sums = new HashMap<>();
    for (int i = 0; i < values.length; i++) {
      sums.merge(i % 3 * 5 + random.nextInt(5), (double) values[i], Double::sum);
    }
    return sums;
  }

  private static Map<Integer, Double> perPartition(Map<Integer, Double> sums, int partitions) {
    Map<Integer, Double> found = new HashMap<>();
    sums.forEach((key, sum) -> found.merge(key % partitions, sum, Double::sum));
    return found;
  }

  private static Digest digest(Map<Integer, Double> saltedSums, int partitions, boolean doubles) {
    DigestSums sums = sums();
    saltedSums.forEach((key, sum) -> addRow(sums, key % partitions, key, doubles ? Double.doubleToLongBits(sum) : sum.longValue()));
    return sums.digest(0);
  }

  @Test
  void otherLastDigitsAreNoOtherKeys() {
    double[] values = new Random(1).doubles(60_000, -1e6, 1e6).toArray();
    Digest before = sumsBy(1000, values, false);
    assertEquals(Change.VALUES, sumsBy(1000, values, true).since(before, 8));
    assertEquals(Change.NONE, sumsBy(1000, values, false).since(before, 8));
  }

  private static Digest sumsBy(int keys, double[] values, boolean backwards) {
    Map<Integer, Double> sums = new HashMap<>();
    for (int i = 0; i < values.length; i++) {
      int at = backwards ? values.length - 1 - i : i;
      sums.merge(at % keys, values[at], Double::sum);
    }
    DigestSums digest = sums();
    sums.forEach((key, sum) -> addRow(digest, key % 8, key, Double.doubleToLongBits(sum)));
    return digest.digest(0);
  }

  /**
   * Of pairs the key says what a record is, except where it only counts, or where the values are batches of records.
   */
  @Test
  void pairsAreTakenForTheSameByTheirKeys() {
    assertEquals(Change.NONE, pairs(8, "a", 1.0, "b", 2.0).since(pairs(8, "b", 2.0, "a", 1.0), 8));
    assertEquals(Change.VALUES, pairs(8, "a", 1.0, "b", 2.0).since(pairs(8, "a", 1.5, "b", 2.25), 8));
    assertEquals(Change.KEYS, pairs(8, "a", 1.0, "b", 2.0).since(pairs(8, "a", 1.0, "c", 2.0), 8));
    assertEquals(Change.KEYS, pairs(8, "a", 1.0, "b", 2.0).since(pairs(8, "a", 2.0, "b", 1.0), 8), "the values have moved");
    assertEquals(Change.VALUES, pairs(1, "a", 1.0, "b", 2.0).since(pairs(1, "a", 2.0, "b", 1.0), 1), "they cannot");
    assertEquals(Change.KEYS, pairs(8, 4, 1.0, 5, 2.0, 6, 3.0).since(pairs(8, 4, 1.5, 5, 2.25, 6, 3.0), 8), "round robin");
    assertEquals(Change.VALUES, pairs(8, 4, 1.0, 6, 2.0, 7, 3.0).since(pairs(8, 4, 1.5, 6, 2.25, 7, 3.0), 8), "not in sequence");
    assertEquals(Change.KEYS, pairs(8, "a", 1.0).since(pairs(8, "a", 1.0, "a", 1.0), 8), "one more");
    assertEquals(Change.KEYS, pairs(8, "a", 1.0).since(Digest.EMPTY, 8));
  }

  private Digest pairs(int partitions, Object... keysAndValues) {
    HashPartitioner partitioner = new HashPartitioner(partitions);
    DigestSums sums = new DigestSums(partitioner);
    for (int i = 0; i < keysAndValues.length; i += 2) {
      sums.add(partitioner.getPartition(keysAndValues[i]), keysAndValues[i], keysAndValues[i + 1], serializer);
    }
    return sums.digest(0);
  }

  @Test
  void aValueThatMovesToAnotherKeyOfItsPartitionShows() {
    DigestSums before = new DigestSums(new HashPartitioner(2));
    before.add(0, "a", 1.0, serializer);
    before.add(0, "b", 2.0, serializer);
    DigestSums after = new DigestSums(new HashPartitioner(2));
    after.add(0, "a", 2.0, serializer);
    after.add(0, "b", 1.0, serializer);
    assertEquals(Change.VALUES, after.digest(0).since(before.digest(0), 2));
  }

  /** A tuple's number of a group in another partition, its text, though the sum beside it has other last digits. */
  @Test
  void partsOfTuplesAreColumns() {
    Digest before = pairs(8, "x", new Tuple2<>("k", 1.0), "y", new Tuple2<>("l", 2.0));
    Digest after = pairs(8, "x", new Tuple2<>("l", Math.nextUp(2.0)), "y", new Tuple2<>("k", Math.nextUp(1.0)));
    assertEquals(Change.KEYS, after.since(before, 8));
    assertEquals(Change.VALUES, pairs(8, "x", new Tuple2<>("k", Math.nextUp(1.0)), "y", new Tuple2<>("l", 2.0)).since(before, 8));
  }

  @Test
  void everyBitOfARowShows() {
    byte[] row = bytes(1L << 40, 7, Double.doubleToLongBits(0.5));
    long before = only(row);
    int end = 4 + 40 + "name 1099511627776".length(); // zeros follow, up to a whole word
    for (int bit = 32; bit < 8 * end; bit++) {
      row[bit / 8] ^= (byte) (1 << bit % 8);
      assertNotEquals(before, only(row), "bit " + bit);
      row[bit / 8] ^= (byte) (1 << bit % 8);
    }
  }

  private static long only(byte[] row) {
    DigestSums sums = sums();
    sums.addRow(1, 1, row, 0, row.length, 40);
    return sums.digest(0).values();
  }
}
