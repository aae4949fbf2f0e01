package org.apache.spark.shuffle.gristmill;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.sum;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

/**
 * The same jobs with Spark's shuffle and with ours: what an operator reads afterwards in Spark's UI and in the event
 * log.
 */
@Timeout(1800)
class EventLogTest {
  private static final String WRITE = "Shuffle Write Metrics: ";
  private static final String READ = "Shuffle Read Metrics: ";
  private static EventLog sort;
  private static EventLog ours;

  @BeforeAll
  static void run() throws IOException {
    sort = logOf("sort");
    ours = logOf(GristmillShuffleManager.class.getName());
    System.out.println("sort: " + total(sort));
    System.out.println("ours: " + total(ours));
  }

  private static EventLog logOf(String shuffle) throws IOException {
    Path folder = Files.createTempDirectory(Path.of("target"), "events").toAbsolutePath();
    SparkConf conf = new SparkConf(false).set("spark.shuffle.manager", shuffle)
        .set("spark.gristmill.fallback", "true")
        .set("spark.eventLog.enabled", "true").set("spark.eventLog.dir", folder.toUri().toString()).set("spark.eventLog.compress", "false")
        .set("spark.eventLog.rolling.enabled", "false")
        .set("spark.shuffle.reduceLocality.enabled", "false") // reduce tasks run anywhere, so some read from another executor
        .set("spark.shuffle.spill.numElementsForceSpillThreshold", "500")
        .set("spark.sql.adaptive.enabled", "false").set("spark.sql.autoBroadcastJoinThreshold", "-1");
    try (TestCluster cluster = new TestCluster(2, conf)) {
      long keys = cluster.context.parallelize(IntStream.range(0, 40_000).boxed().toList(), 20)
          .mapToPair(i -> new Tuple2<>(i % 9_000, "value " + i)).groupByKey(7).count();
      assertEquals(9_000, keys);
      SparkSession session = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
      Dataset<Row> sums = session.range(0, 40_000, 1, 20).selectExpr("id % 5000 as key", "id as value").groupBy("key").agg(sum("value"));
      Dataset<Row> names = session.range(0, 5000, 1, 20).selectExpr("id as name", "cast(id as string) as text");
      assertEquals(5000, sums.join(names, col("key").equalTo(col("name"))).count());
    }
    return new EventLog(folder);
  }

  /**
   * SQL's "data size" was a tenth of what it is, because all tasks of an executor counted it with the serialiser of the
   * first one. Adaptive execution decides by it which side of a join is small enough to be broadcast.
   */
  @Test
  void everyStageShowsTheRecordsAndTheDataSizeThatItShowsWithTheSortShuffle() {
    assertEquals(counts(sort), counts(ours));
  }

  /**
   * The numbers of each stage that do not depend on the shuffle. Stages without a line between them may end in any
   * order.
   */
  private static List<String> counts(EventLog log) {
    List<String> counts = new ArrayList<>();
    log.stages().values().forEach(stage -> {
      stage.keySet().removeIf(name -> !List.of(WRITE + "Shuffle Records Written", READ + "Total Records Read", "SQL data size", "SQL records read",
          "SQL shuffle records written").contains(name) && !name.startsWith(READ + "Push Based Shuffle"));
      counts.add(stage.toString());
    });
    Collections.sort(counts);
    return counts;
  }

  private static Map<String, Long> total(EventLog log) {
    Map<String, Long> all = new TreeMap<>();
    log.stages().values().forEach(stage -> stage.forEach((name, value) -> all.merge(name, value, Long::sum)));
    return all;
  }

  @Test
  void whatIsWrittenIsReadHereOrElsewhere() {
    Map<String, Long> all = total(ours);
    assertEquals(all.get(WRITE + "Shuffle Bytes Written"), all.get(READ + "Local Bytes Read") + all.get(READ + "Remote Bytes Read"));
    assertEquals(all.get("SQL shuffle bytes written"), all.get("SQL local bytes read") + all.get("SQL remote bytes read"));
    for (String where : List.of("Local", "Remote")) {
      assertTrue(all.get(READ + where + " Blocks Fetched") > 0, all.toString());
    }
    assertEquals(0, all.get(READ + "Remote Bytes Read To Disk"));
  }

  /** Times are left out: on a fast machine each task's milliseconds may round to 0. */
  @Test
  void noCountIsMissingThatTheSortShuffleShows() {
    Map<String, Long> here = total(ours);
    List<String> missing = new ArrayList<>();
    total(sort).forEach((name, value) -> {
      if (value > 0 && !name.matches("(?i).*(time|duration).*") && here.getOrDefault(name, 0L) == 0) {
        missing.add(name + " is " + value);
      }
    });
    assertEquals(List.of(), missing);
  }

  /**
   * A history server showed only which shuffle manager was set, and not that single shuffles had not used it, or why.
   */
  @Test
  void theEventLogSaysWhichShuffleWasOursAndWhyAnotherWasNot() {
    Map<String, String> shown = ours.environment();
    assertTrue(shown.get("spark.shuffle.manager.gristmill.active").startsWith("since shuffle 0, of MapPartitionsRDD["), shown.toString());
    String why = shown.get("spark.shuffle.manager.gristmill.fallback.TooSmall");
    assertTrue(why.contains(" at count at EventLogTest.java:") && why.contains("it has 8 blocks"), why);
    assertEquals(List.of(), sort.environment().keySet().stream().filter(key -> key.contains("manager.gristmill")).toList());
  }
}
