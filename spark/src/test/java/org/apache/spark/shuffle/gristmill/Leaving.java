package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkConf;
import org.apache.spark.Success$;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.scheduler.ExecutorDecommissionInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.util.CollectionAccumulator;
import org.gristmill.core.plan.Recovery;
import scala.Option;
import scala.Tuple2;

/** Jobs in a cluster whose executors are decommissioned. */
abstract class Leaving extends Faults {
  Leaving(Recovery recovery) {
    super(recovery);
  }

  @Override
  SparkConf settings() {
    return super.settings().set("spark.speculation", "false").set("spark.decommission.enabled", "true")
        .set("spark.storage.decommission.enabled", "true").set("spark.storage.decommission.replicationReattemptInterval", "500ms");
  }

  /** One job's shuffle, and the maps that have run for it. */
  static final class Job {
    private final CollectionAccumulator<Tuple2<Integer, String>> runs = cluster.context.sc().collectionAccumulator();
    private final JavaPairRDD<Integer, Long> sums;
    private final long homesLost = cluster.coordinator().counters().homesLost();

    /** @param mapMs that each map takes; @param recordMs that a reducer takes for each tenth sum */
    Job(long seed, int mapMs, int recordMs) {
      sums = sums(new Behaviour(seed, 0, 0), mapMs, runs).mapToPair(sum -> {
        Thread.sleep(sum._1() % 10 == 0 ? recordMs : 0);
        return sum;
      });
    }

    void check(String of) {
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), of);
    }

    void noMapHasRunTwice(String of) throws Exception {
      cluster.context.sc().listenerBus().waitUntilEmpty();
      assertEquals(MAPS, runs.value().size(), of + ": maps that ran, " + runs.value());
      assertEquals(homesLost, cluster.coordinator().counters().homesLost(), of + ": homes lost");
    }

    /** The executors that maps have run on. */
    Set<String> executors() {
      Set<String> found = new TreeSet<>();
      runs.value().forEach(run -> found.add(run._2()));
      return found;
    }
  }

  /** Starts a job, and waits until some of its map tasks, or of its reduce tasks, have ended. */
  static CompletableFuture<Void> running(Job job, boolean maps, int tasks, String of) throws Exception {
    cluster.context.sc().listenerBus().waitUntilEmpty(); // tasks of earlier jobs must not count
    CountDownLatch ended = new CountDownLatch(tasks);
    SparkListener counter = new SparkListener() {
      @Override
      public void onTaskEnd(SparkListenerTaskEnd end) {
        if (end.taskType().equals(maps ? "ShuffleMapTask" : "ResultTask") && end.reason() == Success$.MODULE$) {
          ended.countDown();
        }
      }
    };
    cluster.context.sc().addSparkListener(counter);
    CompletableFuture<Void> done = CompletableFuture.runAsync(() -> job.check(of));
    while (!ended.await(50, TimeUnit.MILLISECONDS) && !done.isDone()) {
      // it goes on
    }
    cluster.context.sc().removeSparkListener(counter);
    return done;
  }

  static void decommission(String executor) {
    ExecutorAllocationClient client = (ExecutorAllocationClient) cluster.context.sc().schedulerBackend();
    assertTrue(client.decommissionExecutor(executor, ExecutorDecommissionInfo.apply("a test", Option.empty()), false, false));
  }

  /** The processes of live executors by Spark's names for them. */
  static Map<String, ProcessHandle> processes() throws Exception {
    Map<String, ProcessHandle> found = new TreeMap<>();
    for (ProcessHandle process : TestCluster.executors()) {
      try {
        found.put(TestCluster.executorId(process), process);
      } catch (IOException e) {
        // it has just ended
      }
    }
    return found;
  }

  /** Waits until the process has ended and the driver knows. */
  static void awaitEnd(String executor, ProcessHandle process) throws Exception {
    process.onExit().get();
    while (cluster.coordinator().executors().contains(executor)) {
      Thread.sleep(20);
    }
  }

  static void signal(String signal, ProcessHandle process) throws Exception {
    assertEquals(0, new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid())).start().waitFor());
  }

  /** Kills an executor while it hands over: the others stand still, so that it does not finish. */
  static void killWhileItHandsOver(String executor) throws Exception {
    Map<String, ProcessHandle> all = processes();
    ProcessHandle process = all.remove(executor);
    List<ProcessHandle> stopped = new ArrayList<>(all.values());
    for (ProcessHandle other : stopped) {
      signal("STOP", other);
    }
    try {
      decommission(executor);
      while (!cluster.coordinator().leaving().contains(executor)) {
        Thread.sleep(5);
      }
      process.destroyForcibly();
      awaitEnd(executor, process);
    } finally {
      for (ProcessHandle other : stopped) {
        signal("CONT", other);
      }
    }
  }
}
