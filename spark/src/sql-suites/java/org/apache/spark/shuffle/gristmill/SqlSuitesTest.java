package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.scalatest.Suite;

/**
 * SQL suites of Spark, unchanged, from its published test jars. Our manager comes in by system properties, which every
 * SparkConf of theirs reads. Run by ci/spark-sql.sh.
 */
class SqlSuitesTest {
  @Test
  void ourManagerIsTheOneTheSuitesUse() {
    assertEquals(GristmillShuffleManager.class.getName(), new SparkConf().get("spark.shuffle.manager"));
    assertEquals("false", new SparkConf().get("spark.gristmill.fallback"));
  }

  @TestFactory
  List<DynamicTest> joins() throws ReflectiveOperationException {
    String python = "cancels itself where no Python with PySpark is installed; it would test Python functions, not shuffles";
    return suite("org.apache.spark.sql.JoinSuite", Map.of(
        "SPARK-28323: PythonUDF should be able to use in join condition", python,
        "SPARK-28345: PythonUDF predicate should be able to pushdown to join", python));
  }

  @TestFactory
  List<DynamicTest> aggregates() throws ReflectiveOperationException {
    return suite("org.apache.spark.sql.DataFrameAggregateSuite", Map.of());
  }

  @TestFactory
  List<DynamicTest> adaptiveExecution() throws ReflectiveOperationException {
    String race = "which of two stages ends first decides the plan, as Spark's comment at a sister test says; fails now and then";
    return suite("org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite", Map.of(
        "Avoid plan change if cost is greater", race,
        "Avoid changing merge join to broadcast join if too many empty partitions on build plan", race,
        "SPARK-34091: Batch shuffle fetch in AQE partition coalescing",
        "counts how many blocks the sort shuffle fetches in one; our partitions are always one block",
        "SPARK-48037: Fix SortShuffleWriter lacks shuffle write related metrics resulting in potentially inaccurate data",
        "16,777,217 partitions fall back to the sort shuffle, which these suites do not allow"));
  }

  @TestFactory
  List<DynamicTest> exchanges() throws ReflectiveOperationException {
    return suite("org.apache.spark.sql.execution.ExchangeSuite", Map.of());
  }

  private static List<DynamicTest> suite(String name, Map<String, String> excluded) throws ReflectiveOperationException {
    return SparkSuites.tests((Suite) Class.forName(name).getDeclaredConstructor().newInstance(), excluded);
  }
}
