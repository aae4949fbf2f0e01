package org.apache.spark.shuffle.gristmill;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.udf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Observation;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.TaskCompletionListener;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

/** On a cluster of two executor processes: every kind of shuffle gives the answer of a few sequential lines. */
@Timeout(1800) // against a hang only: the first SQL query of a process takes minutes on a machine that is busy enough
class AnswersTest {
  private static final int RECORDS = 20_000;
  private static final int KEYS = 500;
  private static TestCluster cluster;
  private static List<Tuple2<Integer, Integer>> data;

  @BeforeAll
  static void start() {
    // A reduce task waits for the home of its partition however busy the machine is.
    cluster = new TestCluster(2, new SparkConf(false).set("spark.locality.wait", "60s"));
    Random random = new Random(1);
    data = new ArrayList<>();
    for (int i = 0; i < RECORDS; i++) {
      data.add(new Tuple2<>((int) (KEYS * Math.pow(random.nextDouble(), 3)), random.nextInt(1000))); // skewed
    }
  }

  @AfterAll
  static void stop() {
    cluster.close();
  }

  private static JavaPairRDD<Integer, Integer> pairs(int maps) {
    return cluster.context.parallelizePairs(data, maps);
  }

  private static Map<Integer, Long> sums() {
    Map<Integer, Long> sums = new TreeMap<>();
    data.forEach(r -> sums.merge(r._1(), (long) r._2(), Long::sum));
    return sums;
  }

  /** It gave a bare ArrayIndexOutOfBoundsException, as Spark does. */
  @Test
  void aPartitionerThatPutsKeysNowhereIsNamed() {
    SparkException error = assertThrows(SparkException.class, () -> pairs(2).partitionBy(new Nowhere()).count());
    assertTrue(error.getMessage().contains("Nowhere puts a key into partition -4 of shuffle "), error.getMessage());
    assertTrue(error.getMessage().contains("the partitions 0 to 6"), error.getMessage());
  }

  private static final class Nowhere extends Partitioner {
    @Override
    public int numPartitions() {
      return 7;
    }

    @Override
    public int getPartition(Object key) {
      return -4;
    }
  }

  @Test
  void sumsByKeyWithMapSideCombine() {
    Map<Integer, Long> found = new TreeMap<>(pairs(20).mapValues(v -> (long) v).reduceByKey(Long::sum, 7).collectAsMap());
    assertEquals(sums(), found);
  }

  @Test
  void groupsByKey() {
    Map<Integer, List<Integer>> expected = new TreeMap<>();
    data.forEach(r -> expected.computeIfAbsent(r._1(), k -> new ArrayList<>()).add(r._2()));
    expected.values().forEach(Collections::sort);
    Map<Integer, List<Integer>> found = new TreeMap<>(pairs(20).groupByKey(7).mapValues(values -> {
      List<Integer> sorted = new ArrayList<>();
      values.forEach(sorted::add);
      Collections.sort(sorted);
      return sorted;
    }).collectAsMap());
    assertEquals(expected, found);
  }

  @Test
  void sortsByKey() {
    List<Integer> expected = data.stream().map(Tuple2::_1).sorted().toList();
    assertEquals(expected, pairs(20).sortByKey(true, 7).keys().collect());
  }

  @Test
  void joinsAndCogroups() {
    Map<Integer, Long> counts = new HashMap<>();
    data.forEach(r -> counts.merge(r._1(), 1L, Long::sum));
    JavaPairRDD<Integer, String> names = cluster.context
        .parallelizePairs(IntStream.range(0, KEYS + 50).mapToObj(k -> new Tuple2<>(k, "n" + k)).toList(), 5);
    assertEquals(RECORDS, pairs(20).join(names, 9).filter(r -> r._2()._2().equals("n" + r._1())).count());
    Map<Integer, Long> cogrouped = pairs(20).cogroup(names, 9)
        .mapValues(g -> IntStream.range(0, 1).mapToLong(i -> size(g._1()) * size(g._2())).sum()).collectAsMap();
    for (int k = 0; k < KEYS + 50; k++) {
      assertEquals(counts.getOrDefault(k, 0L), cogrouped.get(k), "key " + k);
    }
  }

  private static long size(Iterable<?> values) {
    long n = 0;
    for (Object ignored : values) {
      n++;
    }
    return n;
  }

  @Test
  void repartitioningKeepsEveryRecord() {
    List<Integer> numbers = IntStream.range(0, 10_000).boxed().toList();
    JavaRDD<Integer> moved = cluster.context.parallelize(numbers, 3).repartition(11);
    assertEquals(numbers, moved.collect().stream().sorted().toList());
  }

  @Test
  void oneShuffleIsReadByTwoJobsAndFeedsAnother() {
    JavaPairRDD<Integer, Long> once = pairs(20).mapValues(v -> (long) v).reduceByKey(Long::sum, 7).cache();
    assertEquals(sums().size(), once.count());
    assertEquals(sums().size(), once.count());
    Map<Integer, Long> byTens = new TreeMap<>();
    sums().forEach((k, v) -> byTens.merge(k / 10, v, Long::sum));
    assertEquals(byTens, new TreeMap<>(once.mapToPair(r -> new Tuple2<>(r._1() / 10, r._2())).reduceByKey(Long::sum, 3)
        .collectAsMap()));
    once.unpersist();
  }

  /** As Spark's SQL does after a query: the plan, and with it the dependency, lives on. */
  @Test
  void aShuffleThatWasRemovedIsWrittenAgain() {
    JavaPairRDD<Integer, Long> shuffled = pairs(20).mapValues(v -> (long) v).reduceByKey(Long::sum, 7);
    for (int round = 0; round < 3; round++) {
      assertEquals(sums(), new TreeMap<>(shuffled.collectAsMap()));
      cluster.context.sc().shuffleDriverComponents().removeShuffle(TestCluster.shuffle(shuffled.rdd()).shuffleId(), true);
    }
  }

  /** Totals of map statuses decide joins; the last maps find nothing. */
  @Test
  void mapsThatWriteNothingOrOnePartitionOnlyPass() {
    JavaPairRDD<Integer, Integer> few = cluster.context.parallelize(data, 20)
        .mapPartitionsWithIndex((map, records) -> map < 15 ? records : Collections.emptyIterator(), false).mapToPair(r -> r);
    assertEquals(few.values().map(v -> (long) v).reduce(Long::sum), few.groupByKey(7).values().map(values -> {
      long sum = 0;
      for (int v : values) {
        sum += v;
      }
      return sum;
    }).reduce(Long::sum));
    JavaPairRDD<Integer, Integer> sorted = pairs(20).sortByKey(true, 7).mapToPair(r -> r);
    assertEquals(RECORDS, sorted.sortByKey(true, 7).count());
  }

  @Test
  void aRecordLargerThanAPageAndAnEmptyShufflePass() {
    String large = "x".repeat(300_000);
    JavaPairRDD<Integer, String> records = cluster.context.parallelizePairs(
        List.of(new Tuple2<>(1, large), new Tuple2<>(2, "small"), new Tuple2<>(1, large)), 3);
    assertEquals(600_000, records.groupByKey(2).flatMap(r -> r._2().iterator()).map(String::length).reduce(Integer::sum) - 5);
    assertEquals(0, records.filter(r -> false).groupByKey(4).count());
  }

  @Test
  void aggregatesAndJoinsInSqlWithAdaptiveExecution() {
    SparkSession sql = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
    sql.conf().set("spark.sql.adaptive.enabled", "true");
    sql.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
    sql.range(0, RECORDS, 1, 12).selectExpr("id % 97 as k", "id as v").createOrReplaceTempView("facts");
    sql.range(0, 97, 1, 4).selectExpr("id as k", "concat('n', id) as name").createOrReplaceTempView("names");
    Dataset<Row> joined = sql.sql("select n.name, sum(f.v) s, count(*) c from facts f join names n on f.k = n.k group by n.name order by n.name");
    List<Row> rows = joined.collectAsList();
    assertEquals(97, rows.size());
    for (Row row : rows) {
      int k = Integer.parseInt(row.getString(0).substring(1));
      long sum = IntStream.range(0, RECORDS).filter(i -> i % 97 == k).asLongStream().sum();
      assertEquals(sum, row.getLong(1));
    }
    assertEquals(rows.stream().map(r -> r.getString(0)).sorted().toList(), rows.stream().map(r -> r.getString(0)).toList());
  }

  /** One key has most of the rows: adaptive execution splits its partition by map ranges. */
  @Test
  void aSkewedJoinIsSplitByMapRangesAndStaysRight() {
    SparkSession sql = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
    sql.conf().set("spark.sql.adaptive.enabled", "true");
    sql.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
    sql.conf().set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1");
    sql.conf().set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "20k");
    sql.conf().set("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "30k");
    sql.conf().set("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "2");
    sql.range(0, 60_000, 1, 12).selectExpr("case when id % 10 < 8 then 1 else id % 300 end as k", "uuid() as v")
        .createOrReplaceTempView("skewed");
    sql.range(0, 300, 1, 4).selectExpr("id as k", "id * 2 as w").createOrReplaceTempView("small");
    Dataset<Row> joined = sql.sql("select s.k, w from skewed s join small t on s.k = t.k");
    assertEquals(60_000, joined.filter("w = k * 2").count());
    joined.collectAsList();
    assertTrue(joined.queryExecution().executedPlan().toString().contains("skew=true"),
        joined.queryExecution().executedPlan().toString());
    for (String key : new String[] {"advisoryPartitionSizeInBytes", "skewJoin.skewedPartitionThresholdInBytes",
        "skewJoin.skewedPartitionFactor", "autoBroadcastJoinThreshold"}) {
      sql.conf().unset("spark.sql.adaptive." + key);
    }
  }

  /**
   * A query lost all its rows, and nothing said so. The first attempt of every map task had failed after its commit.
   * The second attempts did not run their maps and reported 0 records, and adaptive execution leaves out a shuffle of 0
   * records. An observed metric was 0, too.
   */
  @Test
  void attemptsThatFailAfterTheirCommitLoseNoRowsAndNoMetrics() throws Exception {
    SparkSession sql = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
    sql.conf().set("spark.sql.adaptive.enabled", "true");
    sql.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
    UDF1<Long, Long> failing = id -> {
      if (id % 100 == 0 && TaskContext.get().attemptNumber() == 0) {
        TaskContext.get().addTaskCompletionListener(new FailAtTheEnd());
      }
      return id % 10;
    };
    Observation seen = new Observation("seen");
    sql.range(0, 400, 1, 4).withColumn("k", udf(failing, DataTypes.LongType).apply(col("id"))).observe(seen, count(lit(1)).as("rows"))
        .createOrReplaceTempView("failing");
    sql.range(0, 10, 1, 4).selectExpr("id as k", "id as w").createOrReplaceTempView("small");
    assertEquals(400, sql.sql("select id, w from failing f join small s on f.k = s.k").count());
    assertEquals(Map.of("rows", 400L), seen.getAsJava());
  }

  private static final class FailAtTheEnd implements TaskCompletionListener {
    @Override
    public void onTaskCompletion(TaskContext context) {
      throw new IllegalStateException("this attempt fails on purpose, after its commit");
    }
  }

  @Test
  void reduceTasksRunAtTheHomeOfTheirPartition() throws Exception {
    JavaPairRDD<Integer, Long> summed = pairs(40).mapValues(v -> (long) v).reduceByKey(Long::sum, 8);
    TaskMetricsListener metrics = new TaskMetricsListener();
    cluster.context.sc().addSparkListener(metrics);
    summed.collect();
    cluster.context.sc().listenerBus().waitUntilEmpty();
    cluster.context.sc().removeSparkListener(metrics);
    assertTrue(metrics.localBytes.get() > 0);
    assertTrue(metrics.remoteBytes.get() <= metrics.localBytes.get() / 4,
        "local " + metrics.localBytes + " remote " + metrics.remoteBytes);
    assertEquals(metrics.writtenBytes.get(), metrics.localBytes.get() + metrics.remoteBytes.get());
  }
}
