package org.apache.spark.shuffle.gristmill;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.udf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

class RecomputeFaultsTest extends RedoFaults {
  private static final int ROWS_PER_MAP = 500;
  private static final String CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.";
  /**
   * Spark's own error: it has seen by its checksums that a map wrote something else, and results have been made
   * already.
   */
  private static final String SPARKS = "A shuffle map stage with indeterminate output was failed and retried";

  RecomputeFaultsTest() {
    super(Recovery.RECOMPUTE);
  }

  /** Spark's own treatment of maps that do not write the same again. */
  private enum Checksums {
    NONE, COMPARED, ROLLED_BACK
  }

  /**
   * {@code select(f(id) as k).repartition(16, 'k')}, with {@code f} a UDF marked as not deterministic, lost and doubled
   * rows when an executor was killed, with status 0, also with Spark's checksums of rows on.
   */
  @Test
  void rowsOfSqlThatDrawsAnewAreNeverMixed() throws Exception {
    SparkSession sql = SparkSession.builder().sparkContext(cluster.context.sc()).getOrCreate();
    sql.conf().set("spark.sql.classic.shuffleDependency.fileCleanup.enabled", false); // as where Spark's own tests do not run
    int failed = 0;
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      for (Checksums checksums : Checksums.values()) {
        cluster.awaitExecutors(EXECUTORS);
        sql.conf().set(CHECKSUMS + "enabled", checksums != Checksums.NONE);
        sql.conf().set(CHECKSUMS + "enableFullRetryOnMismatch", checksums == Checksums.ROLLED_BACK);
        Moment moment = Moment.values()[(seed - 1 + checksums.ordinal()) % Moment.values().length];
        String of = "SQL, checksums " + checksums + ", killed in " + moment + ", seed " + seed;
        Dataset<Row> rows = rows(sql, moment == Moment.SECOND_MAPS);
        List<String> reasons = checksums == Checksums.ROLLED_BACK ? List.of(OURS, SPARKS) : List.of(OURS);
        failed += struck(moment, new Random(seed), of, reasons, () -> check(rows.toJavaRDD().map(row -> {
          Thread.sleep(1); // a reducer takes a while
          return row;
        }).collect(), of)) ? 0 : 1;
      }
    }
    System.out.println("SQL: of " + RUNS * Checksums.values().length + " jobs " + failed + " ended with an error");
  }

  /** Each row has the attempt of the map that drew its key. */
  private static Dataset<Row> rows(SparkSession sql, boolean twice) {
    UDF1<Long, Long> draw = id -> {
      if (id % ROWS_PER_MAP == 0) {
        Thread.sleep(100);
      }
      return new Random().nextLong();
    };
    UDF1<Long, Long> same = id -> id; // something between two shuffles, or Spark leaves the first one out
    UDF1<Long, Long> attempt = id -> TaskContext.get().taskAttemptId();
    Dataset<Row> drawn = sql.range(0, (long) MAPS * ROWS_PER_MAP, 1, MAPS).toDF("id")
        .withColumn("k", udf(draw, DataTypes.LongType).asNondeterministic().apply(col("id")))
        .withColumn("attempt", udf(attempt, DataTypes.LongType).asNondeterministic().apply(col("id"))).repartition(16, col("k"));
    return twice
        ? drawn.withColumn("same", udf(same, DataTypes.LongType).asNondeterministic().apply(col("id")))
            .repartition(PARTITIONS, col("same"))
        : drawn;
  }

  private static void check(List<Row> found, String of) {
    Set<Long> ids = new HashSet<>();
    Map<Long, Long> attempts = new HashMap<>();
    for (Row row : found) {
      long id = row.getLong(0);
      long attempt = row.getLong(2);
      assertTrue(ids.add(id), of + ": row " + id + " is there twice");
      Long other = attempts.put(id / ROWS_PER_MAP, attempt);
      assertTrue(other == null || other == attempt, of + ": rows of map " + id / ROWS_PER_MAP + " are there from two attempts");
    }
    assertEquals(MAPS * ROWS_PER_MAP, ids.size(), of + ": rows");
  }
}
