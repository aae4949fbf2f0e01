package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.DynamicTest;
import org.scalatest.Args;
import org.scalatest.Args$;
import org.scalatest.Reporter;
import org.scalatest.Suite;
import org.scalatest.events.Event;
import org.scalatest.events.TestFailed;
import org.scalatest.events.TestSucceeded;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Runs a suite of Spark's, test by test, as tests of JUnit. */
final class SparkSuites {
  private SparkSuites() {}

  /** @param excluded tests not to run, each with the reason; a name that does not exist is an error */
  static List<DynamicTest> tests(Suite suite, Map<String, String> excluded) {
    TreeSet<String> names = new TreeSet<>(CollectionConverters.asJava(suite.testNames()));
    List<DynamicTest> tests = new ArrayList<>();
    excluded.keySet().forEach(name -> assertEquals(true, names.contains(name), "no such test: " + name));
    for (String name : CollectionConverters.asJava(suite.testNames())) {
      if (!excluded.containsKey(name)) {
        tests.add(DynamicTest.dynamicTest(name, () -> run(suite, name)));
      }
    }
    return tests;
  }

  private static void run(Suite suite, String name) throws Throwable {
    List<Event> events = new ArrayList<>();
    Reporter reporter = event -> {
      synchronized (events) {
        events.add(event);
      }
    };
    suite.run(Option.apply(name), args(reporter));
    synchronized (events) {
      for (Event event : events) {
        if (event instanceof TestFailed failed) {
          throw failed.throwable().isDefined() ? failed.throwable().get() : new AssertionError(failed.message());
        }
      }
      assertEquals(1, events.stream().filter(TestSucceeded.class::isInstance).count(), "tests run under the name " + name);
    }
  }

  private static Args args(Reporter reporter) {
    return Args$.MODULE$.apply(reporter, Args$.MODULE$.apply$default$2(), Args$.MODULE$.apply$default$3(),
        Args$.MODULE$.apply$default$4(), Args$.MODULE$.apply$default$5(), Args$.MODULE$.apply$default$6(),
        Args$.MODULE$.apply$default$7(), Args$.MODULE$.apply$default$8(),
        Args$.MODULE$.apply$default$9(), Args$.MODULE$.apply$default$10());
  }
}
