package org.apache.spark.shuffle.gristmill;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.package$;
import scala.util.Properties$;

/**
 * Whether this jar is for the Spark that has loaded it. A jar for another version starts, and then a method is missing
 * in the middle of a job. Nothing here differs between versions of Spark: the numbers are constants, which the compiler
 * copies.
 */
final class SparkFit {
  private static final int MINOR_MIN = Math.max(SparkVersion.MINOR_MIN, SparkTransfer.MINOR_MIN);
  private static final int MINOR_MAX = Math.min(SparkVersion.MINOR_MAX, SparkTransfer.MINOR_MAX);
  private static final Pattern VERSION = Pattern.compile("(\\d+)\\.(\\d+).*", Pattern.DOTALL);

  private SparkFit() {}

  static void check() {
    misfit(package$.MODULE$.SPARK_VERSION(), Properties$.MODULE$.versionNumberString()).ifPresent(reason -> {
      throw new IllegalStateException(reason);
    });
  }

  /** The sentence for the user, if this jar is not for these versions of Spark and Scala. */
  static Optional<String> misfit(String spark, String scala) {
    String right = jar(spark, scala);
    String own = jar("4." + MINOR_MIN, "2.13");
    if (own.equals(right)) {
      return Optional.empty();
    }
    return Optional.of(own + ".jar is for Spark " + (MINOR_MIN == MINOR_MAX ? "" : "4." + MINOR_MIN + " and ") + "4." + MINOR_MAX
        + " with Scala 2.13, and this is Spark " + spark + " with Scala " + scala + ": " + (right.isEmpty()
            ? "unset spark.shuffle.manager here, because Gristmill has jars only for Spark 4.0 to 4.3"
            : "use " + right + ".jar, which `make spark-jar` builds"));
  }

  /** The jar for a Spark, without the version of Gristmill; empty if there is none. */
  private static String jar(String spark, String scala) {
    Matcher version = VERSION.matcher(spark);
    if (!version.matches() || !version.group(1).equals("4") || !scala.startsWith("2.13.") && !scala.equals("2.13")) {
      return "";
    }
    int minor = Integer.parseInt(version.group(2));
    return minor > 3 ? "" : "gristmill-spark-4." + (minor == 2 ? 1 : minor) + "_2.13";
  }
}
