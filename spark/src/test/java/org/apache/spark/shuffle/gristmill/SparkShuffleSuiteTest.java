package org.apache.spark.shuffle.gristmill;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Spark's ShuffleSuite, unchanged, from its published test jar. */
class SparkShuffleSuiteTest {
  private static final String FILES = "looks for the sort shuffle's data and index files by name, which this shuffle does not have";

  @TestFactory
  List<DynamicTest> sparksShuffleSuitePasses() {
    return SparkSuites.tests(new GristmillShuffleSuite(), Map.of(
        "[SPARK-4085] rerun map stage if reduce stage cannot find its local shuffle file", FILES,
        "cannot find its local shuffle file if no execution of the stage and rerun shuffle", FILES,
        "SPARK-36206: shuffle checksum detect disk corruption", FILES));
  }
}
