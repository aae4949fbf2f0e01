package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
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
 * A job of sums of doubles, two shuffles deep, was cancelled when an executor died after the first results: the sums had other last digits
 * when they were made again. The sort shuffle finishes such a job.
 */
class OrderFaultsTest extends Faults {
  OrderFaultsTest() {
    super(Recovery.RECOMPUTE);
  }

  /** Partitions are read in many pieces, as they arrived. */
  @Override
  SparkConf settings() {
    return super.settings().set("spark.gristmill.read.bytes", "2k");
  }

  /** One seed, as mvn verify runs it, takes these only. */
  private static List<OrderDependentJobs> jobs(boolean keepKeys, OrderDependentJobs... quick) {
    return RUNS == 1 ? List.of(quick)
        : Arrays.stream(OrderDependentJobs.values()).filter(job -> job.keepsKeys == keepKeys).toList();
  }

  @Test
  void jobsWhoseKeysDoNotDependOnTheOrderAreFinished() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      for (OrderDependentJobs job : jobs(true, OrderDependentJobs.RDD_SUMS, OrderDependentJobs.SQL_SUMS)) {
        struck(job, seed, job + ", killed after a result, seed " + seed);
      }
    }
  }

  @Test
  void rowsThatAnOrderGaveTheirPartitionAreNeverLostOrDoubled() throws Exception {
    int ended = 0;
    int ran = 0;
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      for (OrderDependentJobs job : jobs(false, OrderDependentJobs.SQL_SALTS)) {
        ran++;
        String of = job + ", killed after a result, seed " + seed;
        try {
          struck(job, seed, of);
        } catch (ExecutionException e) {
          String error = String.valueOf(e.getCause().getMessage());
          assertTrue(e.getCause() instanceof SparkException && error.contains(RedoFaults.OURS), of + ": " + e.getCause());
          assertTrue(error.startsWith("Job aborted due to stage failure: ") && error.length() < 300, error);
          ended++;
        }
      }
    }
    System.out.println("Order: of " + ran + " jobs " + ended + " ended with an error");
  }

  /** Kills an executor when one or two results have been delivered. */
  private static void struck(OrderDependentJobs job, int seed, String of) throws Exception {
    cluster.awaitExecutors(EXECUTORS);
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
