package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.DynamicTest;
import org.scalatest.Args;
import org.scalatest.Args$;
import org.scalatest.DynaTags;
import org.scalatest.Filter;
import org.scalatest.Filter$;
import org.scalatest.Reporter;
import org.scalatest.Suite;
import org.scalatest.events.SuiteAborted;
import org.scalatest.events.TestFailed;
import org.scalatest.events.TestSucceeded;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set;
import scala.collection.immutable.Set$;
import scala.jdk.javaapi.CollectionConverters;

/** Runs a suite of Spark's as a whole and tells the outcome of each of its tests as a test of JUnit. */
final class SparkSuites {
  private static final String EXCLUDED = "excluded here";

  private SparkSuites() {}

  /** @param excluded tests not to run, each with the reason; a name that does not exist is an error */
  static List<DynamicTest> tests(Suite suite, Map<String, String> excluded) {
    List<String> names = new ArrayList<>(CollectionConverters.asJava(suite.testNames()));
    for (String name : excluded.keySet()) {
      assertTrue(names.remove(name), "no such test: " + name);
    }
    Map<String, Throwable> failed = new TreeMap<>();
    Map<String, Boolean> succeeded = new TreeMap<>();
    Reporter reporter = event -> {
      synchronized (failed) {
        if (event instanceof TestSucceeded e) {
          succeeded.put(e.testName(), true);
        } else if (event instanceof TestFailed e) {
          failed.put(e.testName(), e.throwable().isDefined() ? e.throwable().get() : new AssertionError(e.message()));
        } else if (event instanceof SuiteAborted e) {
          names.forEach(name -> failed.put(name, new AssertionError("the suite was aborted: " + e.message())));
        }
      }
    };
    suite.run(Option.empty(), args(reporter, without(suite, excluded)));
    List<DynamicTest> tests = new ArrayList<>();
    for (String name : names) {
      if (CollectionConverters.asJava(suite.tags()).getOrDefault(name, noTags()).contains("org.scalatest.Ignore")) {
        continue; // Spark itself does not run it
      }
      tests.add(DynamicTest.dynamicTest(name, () -> {
        if (failed.containsKey(name)) {
          throw new AssertionError(name, failed.get(name));
        }
        assertTrue(succeeded.containsKey(name), "was not run, or was cancelled");
      }));
    }
    return tests;
  }

  private static Filter without(Suite suite, Map<String, String> excluded) {
    Map<String, Set<String>> tags = new HashMap<>();
    excluded.keySet().forEach(name -> tags.put(name, noTags().$plus(EXCLUDED)));
    scala.collection.immutable.Map<String, scala.collection.immutable.Map<String, Set<String>>> bySuite = immutable(
        Map.of(suite.suiteId(), immutable(tags)));
    Set<String> out = noTags().$plus(EXCLUDED).$plus("org.scalatest.Ignore");
    return Filter$.MODULE$.apply(Option.empty(), out, false, new DynaTags(immutable(Map.of()), bySuite));
  }

  private static Set<String> noTags() {
    return Set$.MODULE$.empty();
  }

  private static <V> scala.collection.immutable.Map<String, V> immutable(Map<String, V> map) {
    return Map$.MODULE$.from(CollectionConverters.asScala(map));
  }

  private static Args args(Reporter reporter, Filter filter) {
    return Args$.MODULE$.apply(reporter, Args$.MODULE$.apply$default$2(), filter, Args$.MODULE$.apply$default$4(),
        Args$.MODULE$.apply$default$5(), Args$.MODULE$.apply$default$6(), Args$.MODULE$.apply$default$7(),
        Args$.MODULE$.apply$default$8(), Args$.MODULE$.apply$default$9(), Args$.MODULE$.apply$default$10());
  }
}
