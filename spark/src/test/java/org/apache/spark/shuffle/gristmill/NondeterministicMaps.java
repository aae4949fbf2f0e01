package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import scala.Tuple2;

/**
 * Map functions that write other rows when they run again. Whatever happens, the rows of each map must be those of one
 * attempt, each once.
 */
enum NondeterministicMaps {
  RANDOM_KEYS, SALTED_KEYS, ROUND_ROBIN, SAMPLE, TIME, SOMETIMES_EMPTY, SOMETIMES_FAILING;

  private static final int ROWS_PER_MAP = 500;

  /** Row {@code number} of a map that has written {@code rows} in all. */
  static final class Row implements Serializable { // no record: Kryo cannot write these
    final int map;
    final int number;
    final int rows;

    Row(int map, int number, int rows) {
      this.map = map;
      this.number = number;
      this.rows = rows;
    }

    @Override
    public String toString() {
      return "row " + number + " of " + rows + " of map " + map;
    }
  }

  private List<Tuple2<Long, Row>> rows(int map) {
    Random random = new Random(); // another one for every attempt
    List<Integer> numbers = new ArrayList<>(IntStream.range(0, ROWS_PER_MAP).boxed().toList());
    if (this == SAMPLE) {
      numbers.removeIf(number -> random.nextInt(3) == 0);
    } else if (this == SOMETIMES_EMPTY && random.nextBoolean()) {
      numbers.clear();
    } else if (this == SOMETIMES_FAILING && random.nextInt(6) == 0) {
      throw new IllegalStateException("this attempt fails on purpose");
    } else if (this == ROUND_ROBIN) {
      Collections.shuffle(numbers, random);
    }
    List<Tuple2<Long, Row>> rows = new ArrayList<>();
    for (int i = 0; i < numbers.size(); i++) {
      long key = switch (this) {
        case RANDOM_KEYS, SOMETIMES_EMPTY, SOMETIMES_FAILING -> random.nextInt(1_000_000_000);
        case SALTED_KEYS -> (numbers.get(i) % 10) * 100L + random.nextInt(8);
        case ROUND_ROBIN -> i;
        case SAMPLE -> numbers.get(i);
        case TIME -> System.nanoTime() / 100;
      };
      rows.add(new Tuple2<>(key, new Row(map, numbers.get(i), numbers.size())));
    }
    return rows;
  }

  /** The rows, through a shuffle of either kind of serialiser: one whose records may be moved, or Java's. */
  JavaPairRDD<Long, Row> shuffled(TestCluster cluster, int maps, int partitions, boolean kryo, int workMs) {
    JavaPairRDD<Long, Row> rows = cluster.context.parallelize(IntStream.range(0, maps).boxed().toList(), maps).flatMapToPair(map -> {
      Thread.sleep(workMs);
      return rows(map).iterator();
    });
    return partitioned(cluster, rows, partitions, kryo);
  }

  /** The same rows through one more shuffle, by their number. */
  static JavaPairRDD<Long, Row> again(TestCluster cluster, JavaPairRDD<Long, Row> rows, int partitions, boolean kryo, int workMs) {
    return partitioned(cluster, rows.mapPartitionsToPair(part -> {
      Thread.sleep(workMs);
      List<Tuple2<Long, Row>> byNumber = new ArrayList<>();
      part.forEachRemaining(row -> byNumber.add(new Tuple2<>((long) row._2().number, row._2())));
      return byNumber.iterator();
    }), partitions, kryo);
  }

  private static JavaPairRDD<Long, Row> partitioned(TestCluster cluster, JavaPairRDD<Long, Row> rows, int partitions, boolean kryo) {
    JavaPairRDD<Long, Row> shuffled = rows.partitionBy(new HashPartitioner(partitions));
    if (kryo) {
      Serializer serializer = new KryoSerializer(cluster.context.getConf());
      ((ShuffledRDD<?, ?, ?>) shuffled.rdd()).setSerializer(serializer);
    }
    return shuffled;
  }

  /** Nothing missing, nothing twice, nothing of two attempts of one map. */
  void check(List<Row> found, int maps, String of) {
    Map<Integer, Integer> rows = new HashMap<>();
    Map<Integer, Set<Integer>> numbers = new HashMap<>();
    for (Row row : found) {
      Integer before = rows.put(row.map, row.rows);
      assertTrue(before == null || before == row.rows, of + ": map " + row.map + " is there from two attempts");
      assertTrue(numbers.computeIfAbsent(row.map, map -> new HashSet<>()).add(row.number), of + ": " + row + " is there twice");
    }
    for (int map = 0; map < maps; map++) {
      int expected = this == SAMPLE || this == SOMETIMES_EMPTY ? rows.getOrDefault(map, 0) : ROWS_PER_MAP;
      assertEquals(expected, numbers.getOrDefault(map, Set.of()).size(), of + ": rows of map " + map);
    }
    assertNull(rows.get(maps));
  }
}
