package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * With a jar for another version of Spark, a job ended in its middle with a NoSuchMethodError, which named neither
 * version.
 */
class SparkFitTest {
  private static final String HERE = org.apache.spark.package$.MODULE$.SPARK_VERSION();
  private static final String SCALA = scala.util.Properties$.MODULE$.versionNumberString();

  @Test
  void theSparkThatTheJarWasBuiltForIsTaken() {
    SparkFit.check();
    assertEquals(Optional.empty(), SparkFit.misfit(HERE + "-vendor-7", SCALA));
  }

  @Test
  void aSentenceNamesBothVersionsAndTheRightJar() {
    for (String other : new String[] {"4.0.2", "4.1.0", "4.3.1"}) {
      if (!line(other).equals(line(HERE))) {
        String sentence = SparkFit.misfit(other, SCALA).orElseThrow();
        assertTrue(sentence.contains("this is Spark " + other), sentence);
        assertTrue(sentence.startsWith("gristmill-spark-" + line(HERE) + "_2.13.jar is for Spark 4."), sentence);
        assertTrue(sentence.contains("use gristmill-spark-" + line(other) + "_2.13.jar"), sentence);
      }
    }
  }

  private static String line(String spark) {
    return spark.startsWith("4.2.") ? "4.1" : spark.substring(0, 3);
  }

  @Test
  void whereThereIsNoJarTheSentenceSaysSo() {
    for (String[] other : new String[][] {{"3.5.6", "2.13.8"}, {"3.5.6", "2.12.18"}, {"4.4.0", SCALA}, {"5.0.0", SCALA}, {HERE, "3.3.1"}}) {
      String sentence = SparkFit.misfit(other[0], other[1]).orElseThrow();
      assertTrue(sentence.contains("Spark " + other[0] + " with Scala " + other[1]), sentence);
      assertTrue(sentence.contains("only for Spark 4.0 to 4.3"), sentence);
    }
  }
}
