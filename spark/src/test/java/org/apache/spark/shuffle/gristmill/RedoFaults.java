package org.apache.spark.shuffle.gristmill;

import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.ExecutorLostFailure;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

/**
 * A map drew random keys, an executor was killed, and the answer had 3,476 rows too few and 3,478 twice, with exit
 * status 0. Now an answer is right, or the job ends with an error that says why: the latter only if results were made
 * before the executor died. One class for each way to recover runs these.
 */
abstract class RedoFaults extends HomeFaults {
  static final int PARTITIONS = 6;
  static final String OURS = "has run again and has not written what it wrote before";

  RedoFaults(Recovery recovery) {
    super(recovery);
  }

  /** When an executor is killed: after a number of tasks of this stage, or before the next job. */
  enum Moment {
    MAPS, SECOND_MAPS, REDUCERS, NEXT_JOB
  }

  @Test
  void rowsOfMapsThatDrawAnewAreNeverMixed() throws Exception {
    int failed = 0;
    int jobs = 0;
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      boolean all = RUNS > 1 || recovery == Recovery.RECOMPUTE; // one seed, as mvn verify runs it, takes one moment for the other ways
      for (Moment moment : all ? Moment.values() : new Moment[] {Moment.SECOND_MAPS}) {
        jobs++;
        Random random = new Random(seed * 31L + moment.ordinal());
        NondeterministicMaps kind = NondeterministicMaps.values()[random.nextInt(NondeterministicMaps.values().length)];
        failed += struck(kind, moment, random, kind + ", " + recovery + ", killed in " + moment + ", seed " + seed) ? 0 : 1;
      }
    }
    System.out.println(recovery + ": of " + jobs + " jobs " + failed + " ended with an error");
  }

  private boolean struck(NondeterministicMaps kind, Moment moment, Random random, String of) throws Exception {
    cluster.awaitExecutors(EXECUTORS);
    boolean kryo = random.nextBoolean();
    JavaPairRDD<Long, NondeterministicMaps.Row> first = kind.shuffled(cluster, MAPS, PARTITIONS, kryo, 50);
    JavaPairRDD<Long, NondeterministicMaps.Row> rows = moment == Moment.SECOND_MAPS
        ? NondeterministicMaps.again(cluster, first, PARTITIONS, kryo, 50)
        : first;
    return struck(moment, random, of, List.of(OURS), () -> kind.check(rows.values().map(row -> {
      Thread.sleep(1 + row.rows % 2); // a reducer takes a while
      return row;
    }).collect(), MAPS, of));
  }

  /**
   * Kills an executor during a job that checks its answer or, with NEXT_JOB, before it runs a second time.
   *
   * @param reasons one of these is in the error of a job that may fail
   * @return true if the job gave its answer; false if it ended with an error that is allowed, and gave the answer when
   *     run again
   */
  static boolean struck(Moment moment, Random random, String of, List<String> reasons, Runnable checkedJob) throws Exception {
    if (moment == Moment.NEXT_JOB) {
      checkedJob.run();
      kill(random);
    }
    cluster.context.sc().listenerBus().waitUntilEmpty(); // events of earlier jobs must not count
    Ended ended = new Ended(moment == Moment.MAPS ? 0 : 1, moment == Moment.MAPS ? 1 + random.nextInt(MAPS) : 1 + random.nextInt(3));
    cluster.context.sc().addSparkListener(ended);
    CompletableFuture<Void> job = CompletableFuture.runAsync(checkedJob);
    if (moment != Moment.NEXT_JOB) {
      while (!ended.enough.await(100, TimeUnit.MILLISECONDS) && !job.isDone()) {
        // the job goes on
      }
      kill(random);
    }
    try {
      job.get();
      return true;
    } catch (ExecutionException e) {
      cluster.context.sc().listenerBus().waitUntilEmpty();
      String error = String.valueOf(e.getCause().getMessage());
      if (!ended.results || !(e.getCause() instanceof SparkException) || reasons.stream().noneMatch(error::contains)) {
        throw new AssertionError(of, e.getCause());
      }
      checkedJob.run();
      return false;
    } finally {
      cluster.context.sc().removeSparkListener(ended);
    }
  }

  private static void kill(Random random) throws InterruptedException {
    List<ProcessHandle> executors = TestCluster.executors();
    executors.get(random.nextInt(executors.size())).destroyForcibly();
  }

  /**
   * Counts ended tasks of the stage that follows {@code stagesBefore} others, and notes whether a task of the last
   * stage may have delivered a result. The moment alone does not tell: on a busy machine, a kill after the last map can
   * come after the first result.
   */
  private static final class Ended extends SparkListener {
    final CountDownLatch enough;
    volatile boolean results;
    private int stagesBefore;

    Ended(int stagesBefore, int tasks) {
      this.stagesBefore = stagesBefore;
      enough = new CountDownLatch(tasks);
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
      stagesBefore--;
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      boolean success = end.reason().toString().equals("Success");
      if (stagesBefore <= 0 && success) {
        enough.countDown();
      }
      results |= end.taskType().equals("ResultTask") && (success || end.reason() instanceof ExecutorLostFailure);
    }
  }
}
