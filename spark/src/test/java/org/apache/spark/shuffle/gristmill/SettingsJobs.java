package org.apache.spark.shuffle.gristmill;

import static org.apache.spark.sql.functions.col;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/**
 * Two jobs of several shuffles each, one of RDDs and one of DataFrames, run on two executors under settings of Spark's.
 */
final class SettingsJobs {
  private static final int RECORDS = 4_000;
  private static final int ROWS = 8_000;
  private static final int KEYS = 61;
  private static final int TEXT = 700; // a partition of them is longer than one read from its home
  private static final long LIMIT_S = Long.getLong("gristmill.settings.limit", 900);

  private SettingsJobs() {}

  /**
   * The rows of both jobs, sorted; or the error that ended one of them, or the start of the application.
   * {@code remoteBytes} were read from other executors.
   */
  record Outcome(List<String> rows, Throwable error, long remoteBytes) {
    String reason() {
      Throwable cause = error;
      while (cause.getCause() != null && cause.getCause() != cause) {
        cause = cause.getCause();
      }
      return String.valueOf(cause).lines().findFirst().orElse("");
    }
  }

  /** The rows of both jobs, by a few sequential lines. */
  static List<String> expected() {
    Map<Integer, long[]> sums = new TreeMap<>();
    for (int i = 0; i < RECORDS; i++) {
      long[] sum = sums.computeIfAbsent(key(i), k -> new long[2]);
      sum[0]++;
      sum[1] += text(i).hashCode();
    }
    List<String> rows = new ArrayList<>();
    sums.forEach((key, sum) -> rows.add("rdd " + key + " " + sum[0] + " " + sum[1]));
    for (int k = 0; k < KEYS; k++) {
      int key = k;
      List<String> hex = IntStream.range(0, ROWS).filter(i -> i % KEYS == key)
          .mapToObj(i -> Integer.toHexString(i).toUpperCase(Locale.ROOT).repeat(20)).toList();
      long sum = IntStream.range(0, ROWS).filter(i -> i % KEYS == key).asLongStream().sum();
      rows.add("sql n" + k + " " + hex.size() + " " + sum + " " + hex.stream().max(String::compareTo).orElseThrow() + " "
          + hex.stream().mapToInt(String::length).sum());
    }
    return rows.stream().sorted().toList();
  }

  private static int key(int i) {
    return i % 3 == 0 ? 0 : i % KEYS;
  }

  private static String text(int i) {
    Random random = new Random(i);
    StringBuilder text = new StringBuilder(TEXT);
    while (text.length() < TEXT) {
      text.append((char) ('!' + random.nextInt(90)));
    }
    return text.toString();
  }

  /** Runs both jobs on a new cluster. Tasks run wherever there is room, so most of them read from another executor. */
  static Outcome run(SparkConf settings) throws InterruptedException {
    SparkConf conf = new SparkConf(false).set("spark.locality.wait", "0").set("spark.shuffle.reduceLocality.enabled", "false")
        .set("spark.sql.autoBroadcastJoinThreshold", "-1").set("spark.task.maxFailures", "3")
        .set("spark.stage.maxConsecutiveAttempts", "3")
        .set("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"); // an executor lives for seconds
    settings.setIfMissing("spark.gristmill.page.bytes", "64k").setIfMissing("spark.gristmill.segment.bytes", "32k")
        .setIfMissing("spark.gristmill.store.bytes", "512k");
    for (Tuple2<String, String> set : settings.getAll()) {
      conf.set(set._1(), set._2());
    }
    try (TestCluster cluster = new TestCluster(2, conf)) {
      TaskMetricsListener metrics = new TaskMetricsListener();
      cluster.context.sc().addSparkListener(metrics);
      CompletableFuture<List<String>> jobs = CompletableFuture.supplyAsync(() -> rows(cluster), task -> new Thread(task, "jobs").start());
      try {
        List<String> rows = jobs.get(LIMIT_S, TimeUnit.SECONDS);
        cluster.context.sc().listenerBus().waitUntilEmpty();
        return new Outcome(rows, null, metrics.remoteBytes.get());
      } catch (TimeoutException e) {
        return new Outcome(null, new TimeoutException("no rows after " + LIMIT_S + " s"), 0);
      } catch (ExecutionException e) {
        return new Outcome(null, e.getCause(), 0);
      }
    } catch (InterruptedException e) {
      throw e;
    } catch (Throwable e) { // Spark refuses a setting with whatever it has, errors too
      return new Outcome(null, e, 0);
    } finally {
      waitUntilStopped();
    }
  }

  /** An application that Spark itself began to stop still does so when {@code close} returns. */
  private static void waitUntilStopped() throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
    while (SparkContext$.MODULE$.getActive().isDefined() && System.nanoTime() < end) {
      Thread.sleep(50);
    }
    if (SparkContext$.MODULE$.getActive().isDefined()) {
      throw new AssertionError("an application has not ended after " + LIMIT_S + " s");
    }
  }

  private static List<String> rows(TestCluster cluster) {
    List<String> rows = new ArrayList<>(cluster.context.parallelize(IntStream.range(0, RECORDS).boxed().toList(), 8)
        .mapToPair(i -> new Tuple2<>(key(i), text(i))).groupByKey(9)
        .mapToPair(group -> {
          long count = 0;
          long sum = 0;
          for (String text : group._2()) {
            count++;
            sum += text.hashCode();
          }
          return new Tuple2<>(group._1(), new long[] {count, sum});
        }).partitionBy(new HashPartitioner(5))
        .map(row -> "rdd " + row._1() + " " + row._2()[0] + " " + row._2()[1]).collect());
    SparkSession sql = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
    sql.range(0, ROWS, 1, 8).selectExpr("id % " + KEYS + " as k", "id as v", "repeat(hex(id), 20) as s").repartition(9, col("k"))
        .groupBy("k").agg(Map.of("v", "sum", "s", "max")).createOrReplaceTempView("sums");
    sql.range(0, ROWS, 1, 8).selectExpr("id % " + KEYS + " as k", "length(repeat(hex(id), 20)) as l").repartition(7, col("k"))
        .groupBy("k").agg(Map.of("l", "sum", "*", "count")).createOrReplaceTempView("lengths");
    sql.range(0, KEYS, 1, 4).selectExpr("id as k", "concat('n', id) as name").createOrReplaceTempView("names");
    sql.sql("select name, `count(1)`, `sum(v)`, `max(s)`, `sum(l)` from sums join lengths using (k) join names using (k) order by name")
        .collectAsList().forEach(r -> rows.add("sql " + r.getString(0) + " " + r.getLong(1) + " " + r.getLong(2) + " " + r.getString(3)
            + " " + r.getLong(4)));
    return rows.stream().sorted().toList();
  }
}
