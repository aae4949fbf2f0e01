package org.apache.spark.shuffle.gristmill;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.rdd.RDD;
import org.gristmill.spark.node.FallbackReason;

/**
 * Says on the page Environment of Spark's UI whether the plugin is at work, and why not. These are properties of the
 * application, so Spark writes them to the event log, and a history server shows them without our jar; it would drop an
 * event of a class of ours. An update holds all properties, some 50 KB, so there is one for the first shuffle of each
 * kind only. The driver's log names every shuffle.
 */
final class EnvironmentPage {
  private static final String PREFIX = "spark.shuffle.manager.gristmill.";

  private final SparkConf conf;
  private final Set<String> shown = new HashSet<>();

  /** @param conf the driver's, from which Spark makes the page */
  EnvironmentPage(SparkConf conf) {
    this.conf = conf;
  }

  void ours(int shuffle, RDD<?> maps) {
    show("active", "since shuffle " + shuffle + ", of " + maps, maps);
  }

  void fellBack(int shuffle, RDD<?> maps, FallbackReason.Found reason) {
    String all = reason.always()
        ? "every shuffle of this application: "
        : "shuffle " + shuffle + ", of " + maps
            + ", and perhaps later ones, which the driver's log names: ";
    show("fallback." + reason.name(), all + reason.sentence(), maps);
  }

  private synchronized void show(String key, String value, RDD<?> maps) {
    if (shown.add(key)) {
      conf.set(PREFIX + key, value);
      maps.context().postEnvironmentUpdate();
    }
  }
}
