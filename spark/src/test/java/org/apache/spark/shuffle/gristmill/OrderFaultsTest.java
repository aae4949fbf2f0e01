package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

/**
 * A job of sums of doubles, two shuffles deep, was cancelled when an executor died after the first results: the sums
 * had other last digits when they were made again. The sort shuffle finishes such a job.
 */
class OrderFaultsTest extends Faults {
  private static final List<OrderDependentJobs> QUICK = List.of(OrderDependentJobs.RDD_SUMS, OrderDependentJobs.SQL_SUMS,
      OrderDependentJobs.SQL_SALTS);

  OrderFaultsTest() {
    super(Recovery.RECOMPUTE);
  }

  /** Partitions are read in many pieces, as they arrived. */
  @Override
  SparkConf settings() {
    return super.settings().set("spark.gristmill.read.bytes", "2k");
  }

  private interface Struck {
    void run(OrderDependentJobs job, int seed, String of) throws Exception;
  }

  /** One seed, as mvn verify runs it, takes these only. */
  private static void eachJob(boolean keepsKeys, Struck struck) {
    List<OrderDependentJobs> jobs = RUNS == 1 ? QUICK : List.of(OrderDependentJobs.values());
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      for (OrderDependentJobs job : jobs) {
        if (job.keepsKeys == keepsKeys) {
          String of = job + ", killed after a result, seed " + seed;
          try {
            struck.run(job, seed, of);
          } catch (Exception e) {
            throw new AssertionError(of, e);
          }
        }
      }
    }
  }

  /** A job that ends with an error is struck alike with the sort shuffle, which must not finish it either. */
  @Test
  void jobsWhoseKeysDoNotDependOnTheOrderAreFinished() {
    Set<String> notFinished = new TreeSet<>();
    eachJob(true, (job, seed, of) -> {
      try {
        struck(job, seed, of);
      } catch (ExecutionException e) {
        System.out.println(of + ": not finished: " + e.getCause());
        notFinished.add(of);
      }
    });
    assertTrue(notFinished.size() < RUNS, notFinished.toString());
    if (!notFinished.isEmpty()) {
      cluster.close();
      cluster = new TestCluster(EXECUTORS, settings().set("spark.shuffle.manager", "sort"));
      eachJob(true, (job, seed, of) -> {
        if (notFinished.contains(of)) {
          assertThrows(ExecutionException.class, () -> struck(job, seed, of), of + ": the sort shuffle finishes it");
        }
      });
      cluster.close();
      start();
    }
  }

  @Test
  void rowsThatAnOrderGaveTheirPartitionAreNeverLostOrDoubled() {
    List<String> ended = new ArrayList<>();
    eachJob(false, (job, seed, of) -> {
      try {
        struck(job, seed, of);
      } catch (ExecutionException e) {
        String error = String.valueOf(e.getCause().getMessage());
        assertTrue(e.getCause() instanceof SparkException && error.contains(RedoFaults.OURS), of + ": " + e.getCause());
        assertTrue(error.startsWith("Job aborted due to stage failure: ") && error.length() < 300, error);
        ended.add(of);
      }
    });
    System.out.println("Order: jobs that ended with an error: " + ended);
  }

  /** Kills an executor when one or two results have been delivered. */
  private static void struck(OrderDependentJobs job, int seed, String of) throws Exception {
    while (cluster.context.sc().statusTracker().getExecutorInfos().length <= EXECUTORS) { // the driver is one more
      Thread.sleep(50);
    }
    Random random = new Random(seed * 31L + job.ordinal());
    cluster.context.sc().listenerBus().waitUntilEmpty();
    CountDownLatch results = new CountDownLatch(1 + random.nextInt(2));
    SparkListener listener = new SparkListener() {
      @Override
      public void onTaskEnd(SparkListenerTaskEnd end) {
        if (end.taskType().equals("ResultTask") && end.reason().toString().equals("Success")) {
          results.countDown();
        }
      }
    };
    cluster.context.sc().addSparkListener(listener);
    try {
      CompletableFuture<Void> running = CompletableFuture.runAsync(() -> job.check(cluster.context, of));
      while (!results.await(50, TimeUnit.MILLISECONDS) && !running.isDone()) {
        // the job goes on
      }
      if (running.isDone()) {
        running.get();
        throw new AssertionError(of + ": the job ended before an executor was killed");
      }
      List<ProcessHandle> executors = TestCluster.executors();
      executors.get(random.nextInt(executors.size())).destroyForcibly();
      running.get();
    } finally {
      cluster.context.sc().removeSparkListener(listener);
    }
  }
}
