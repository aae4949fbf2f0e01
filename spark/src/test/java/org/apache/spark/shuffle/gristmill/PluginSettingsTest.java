package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;

/** {@code spark.gristmill.window.bytes=0} was accepted, and ended the first job after four attempts of a stage. */
class PluginSettingsTest {
  private static SparkConf conf() {
    return new SparkConf(false).setMaster("local[1]").setAppName("settings").set("spark.ui.enabled", "false")
        .set("spark.shuffle.manager", GristmillShuffleManager.class.getName());
  }

  private static Throwable cause(Throwable e) {
    return e.getCause() == null ? e : cause(e.getCause());
  }

  @Test
  void theApplicationDoesNotStartWithAValueThatCannotBe() {
    Throwable error = cause(assertThrows(Throwable.class, () -> new JavaSparkContext(conf().set("spark.gristmill.window.bytes", "0"))));
    assertEquals("spark.gristmill.window.bytes is '0'; it must be at least 1k. Leave it out for the default, 16m", error.getMessage());
  }

  @Test
  void aNameThatNoSettingHasDoesNotKeepTheApplicationFromStarting() {
    try (JavaSparkContext context = new JavaSparkContext(conf().set("spark.gristmill.windwo.bytes", "1m"))) {
      assertEquals(1, context.parallelize(List.of(1)).count());
    }
  }

  /** Below 1 MiB it was read as 0; above 8 EiB it would be negative. A plain number counts MiB, as in Spark. */
  @Test
  void theBytesInFlightAreThoseThatSparkUnderstands() {
    Map<String, Long> expected = Map.of("48m", 48L << 20, "1", 1L << 20, "0", 0L, "512k", 512L << 10, "1b", 1L, "1536k", 1536L << 10,
        " 2g ", 2L << 30, "9223372036854775807", Long.MAX_VALUE, "8192p", Long.MAX_VALUE, "8191p", 8191L << 50);
    expected.forEach((set, bytes) -> assertEquals(bytes,
        GristmillShuffleManager.inFlightBytes(new SparkConf(false).set("spark.reducer.maxSizeInFlight", set)), set));
    assertEquals(48L << 20, GristmillShuffleManager.inFlightBytes(new SparkConf(false)));
    for (String bad : new String[] {"-1", "x", "1.5m"}) {
      SparkConf conf = new SparkConf(false).set("spark.reducer.maxSizeInFlight", bad);
      assertThrows(IllegalArgumentException.class, () -> GristmillShuffleManager.inFlightBytes(conf), bad);
    }
  }
}
