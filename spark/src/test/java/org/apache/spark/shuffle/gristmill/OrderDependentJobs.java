package org.apache.spark.shuffle.gristmill;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.collect_list;
import static org.apache.spark.sql.functions.first;
import static org.apache.spark.sql.functions.monotonically_increasing_id;
import static org.apache.spark.sql.functions.rand;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.udf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import scala.Tuple2;

/**
 * Jobs of two shuffles in which the output of the second one's maps depends on the order in which records of the first
 * one arrive. The sort shuffle finishes all of them when an executor dies: right for sums, {@code first} and lists, and
 * with rows lost and doubled where the order decides on the partition of a row.
 */
enum OrderDependentJobs {
  /** The order decides on the last digits of sums, or on which of several values is taken: the keys are the same. */
  RDD_SUMS(true), SQL_SUMS(true), SQL_FIRST(true), SQL_LISTS(true),
  /** The order decides on the partition that a row goes to. */
  SQL_SALTS(false), SQL_IDS(false), SQL_ROUND_ROBIN(false), RDD_INDEX(false), RDD_SEEDED_SALTS(false);

  private static final int MAPS = 8;
  private static final int ROWS_PER_MAP = 1500;
  private static final int KEYS = 600;
  private static final int GROUPS = 40;
  private static final int PARTITIONS = 6;

  final boolean keepsKeys;

  OrderDependentJobs(boolean keepsKeys) {
    this.keepsKeys = keepsKeys;
  }

  private static int key(long row) {
    return (int) (row * 7919 % KEYS);
  }

  private static double value(long row) {
    return Math.sin(row) * 1e3;
  }

  /** Runs the job and checks its answer against sequential sums. */
  void check(JavaSparkContext context, String of) {
    if (this == RDD_SUMS) {
      JavaPairRDD<Integer, Double> groups = sums(context).mapToPair(s -> new Tuple2<>(s._1() % GROUPS, s._2())).reduceByKey(Double::sum, PARTITIONS);
      checkSums(slowly(groups.map(s -> s)).collect(), GROUPS, of);
    } else if (this == RDD_INDEX || this == RDD_SEEDED_SALTS) {
      boolean salted = this == RDD_SEEDED_SALTS;
      JavaPairRDD<Long, Integer> numbered = sums(context).mapPartitionsToPair(part -> {
        Random random = new Random(1);
        List<Tuple2<Long, Integer>> rows = new ArrayList<>();
        part.forEachRemaining(s -> rows.add(new Tuple2<>(salted ? random.nextLong() : 3L * rows.size(), s._1())));
        return rows.iterator();
      });
      checkKeys(slowly(numbered.partitionBy(new HashPartitioner(PARTITIONS)).map(Tuple2::_2)).collect(), of);
    } else {
      checkSql(SparkSession.builder().sparkContext(context.sc()).getOrCreate(), of);
    }
  }

  private static JavaPairRDD<Integer, Double> sums(JavaSparkContext context) {
    JavaRDD<Integer> maps = context.parallelize(IntStream.range(0, MAPS).boxed().toList(), MAPS);
    return maps.flatMapToPair(map -> IntStream.range(map * ROWS_PER_MAP, (map + 1) * ROWS_PER_MAP)
        .mapToObj(row -> new Tuple2<>(key(row), value(row))).iterator()).partitionBy(new HashPartitioner(PARTITIONS))
        .mapPartitionsToPair(OrderDependentJobs::summed);
  }

  /** No map-side combining, so that every sum is made of twenty records of eight maps. */
  private static Iterator<Tuple2<Integer, Double>> summed(Iterator<Tuple2<Integer, Double>> part) {
    Map<Integer, Double> sums = new LinkedHashMap<>(); // in the order of arrival
    part.forEachRemaining(record -> sums.merge(record._1(), record._2(), Double::sum));
    return sums.entrySet().stream().map(e -> new Tuple2<>(e.getKey(), e.getValue())).iterator();
  }

  /** About 400 ms for each result. */
  private <T> JavaRDD<T> slowly(JavaRDD<T> rows) {
    int millis = 400 * PARTITIONS / (this == RDD_SUMS || this == SQL_SUMS ? GROUPS : KEYS);
    return rows.map(row -> {
      Thread.sleep(millis);
      return row;
    });
  }

  private void checkSql(SparkSession sql, String of) {
    sql.conf().set("spark.sql.adaptive.coalescePartitions.enabled", false);
    sql.conf().set("spark.sql.classic.shuffleDependency.fileCleanup.enabled", false); // as where Spark's own tests do not run
    sql.conf().set("spark.sql.shuffle.partitions", PARTITIONS);
    UDF1<Long, Integer> key = OrderDependentJobs::key;
    UDF1<Long, Double> value = OrderDependentJobs::value;
    Dataset<Row> rows = sql.range(0, (long) MAPS * ROWS_PER_MAP, 1, MAPS).withColumn("k", udf(key, DataTypes.IntegerType).apply(col("id")))
        .withColumn("x", udf(value, DataTypes.DoubleType).apply(col("id"))).repartition(PARTITIONS, col("k"));
    Dataset<Row> grouped = switch (this) {
      case SQL_FIRST -> rows.groupBy("k").agg(first("x").as("x"));
      case SQL_LISTS -> rows.groupBy("k").agg(collect_list("x").as("x"));
      default -> rows.groupBy("k").agg(sum("x").as("x"));
    };
    Dataset<Row> moved = switch (this) {
      case SQL_SUMS -> grouped.groupBy(col("k").mod(GROUPS).as("k")).agg(sum("x").as("x"));
      case SQL_FIRST, SQL_LISTS -> grouped.repartition(PARTITIONS, col("k").mod(GROUPS));
      case SQL_SALTS -> grouped.withColumn("salt", rand(7)).repartition(PARTITIONS, col("salt"));
      case SQL_IDS -> grouped.withColumn("id", monotonically_increasing_id()).repartition(PARTITIONS, col("id"));
      default -> grouped.repartition(PARTITIONS);
    };
    List<Row> found = slowly(moved.toJavaRDD()).collect();
    if (this == SQL_SUMS) {
      checkSums(found.stream().map(row -> new Tuple2<>(row.getInt(0), row.getDouble(1))).toList(), GROUPS, of);
    } else {
      checkKeys(found.stream().map(row -> row.getInt(0)).toList(), of);
    }
    if (this == SQL_LISTS) {
      for (Row row : found) {
        List<Double> list = new ArrayList<>(row.<Double>getList(1));
        assertEquals(rowsOf(row.getInt(0)), list.stream().sorted().toList(), of + ": the list of " + row.getInt(0));
      }
    } else if (this == SQL_FIRST) {
      found.forEach(row -> assertTrue(rowsOf(row.getInt(0)).contains(row.getDouble(1)), of + ": " + row));
    }
  }

  private static List<Double> rowsOf(int key) {
    return IntStream.range(0, MAPS * ROWS_PER_MAP).filter(row -> key(row) == key).mapToObj(OrderDependentJobs::value).sorted().toList();
  }

  private static void checkKeys(List<Integer> found, String of) {
    assertEquals(IntStream.range(0, KEYS).boxed().toList(), found.stream().sorted().toList(), of + ": each key once");
  }

  private static void checkSums(List<Tuple2<Integer, Double>> found, int groups, String of) {
    Map<Integer, Double> expected = new TreeMap<>();
    IntStream.range(0, MAPS * ROWS_PER_MAP).forEach(row -> expected.merge(key(row) % groups, value(row), Double::sum));
    assertEquals(List.copyOf(expected.keySet()), found.stream().map(Tuple2::_1).sorted().toList(), of + ": each key once");
    found.forEach(sum -> assertEquals(expected.get(sum._1()), sum._2(), 1e-9 * 1e3 * ROWS_PER_MAP, of + ": the sum of " + sum._1()));
  }
}
