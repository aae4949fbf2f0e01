package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.gristmill.core.Recovery;
import org.junit.jupiter.api.Test;

/**
 * A map drew random keys, an executor was killed, and the answer had 3,476 rows too few and 3,478 twice, with exit status 0. Now an
 * answer is right, or the job ends with an error that says why: the latter only if results were made before the executor died. One class
 * for each way to recover runs these.
 */
abstract class RedoFaults extends HomeFaults {
  private static final int PARTITIONS = 6;

  RedoFaults(Recovery recovery) {
    super(recovery);
  }

  /** When an executor is killed: when so many tasks of a stage have ended. */
  private enum Moment { MAPS, SECOND_MAPS, REDUCERS, NEXT_JOB }

  @Test
  void rowsOfMapsThatDrawAnewAreNeverMixed() throws Exception {
    int failed = 0;
    int jobs = 0;
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      boolean all = RUNS > 1 || recovery == Recovery.RECOMPUTE; // one seed, as mvn verify runs it, takes one moment for the other ways
      for (Moment moment : all ? Moment.values() : new Moment[] {Moment.SECOND_MAPS}) {
        jobs++;
        Random random = new Random(seed * 31L + moment.ordinal());
        Redrawn kind = Redrawn.values()[random.nextInt(Redrawn.values().length)];
        failed += struck(kind, moment, random, kind + ", " + recovery + ", killed in " + moment + ", seed " + seed) ? 0 : 1;
      }
    }
    System.out.println(recovery + ": of " + jobs + " jobs " + failed + " ended with an error");
  }

  /** True if there is an answer; it is right. False if there is the error that may be. */
  private boolean struck(Redrawn kind, Moment moment, Random random, String of) throws Exception {
    cluster.awaitExecutors(EXECUTORS);
    boolean kryo = random.nextBoolean();
    JavaPairRDD<Long, Redrawn.Row> first = kind.shuffled(cluster, MAPS, PARTITIONS, kryo, 50);
    JavaPairRDD<Long, Redrawn.Row> rows = moment == Moment.SECOND_MAPS ? Redrawn.again(cluster, first, PARTITIONS, kryo, 50) : first;
    if (moment == Moment.NEXT_JOB) {
      kind.check(rows.values().collect(), MAPS, of);
      kill(random);
    }
    Ended ended = new Ended(moment == Moment.MAPS ? 0 : 1, moment == Moment.MAPS ? 1 + random.nextInt(MAPS) : 1 + random.nextInt(3));
    cluster.context.sc().addSparkListener(ended);
    CompletableFuture<List<Redrawn.Row>> job = CompletableFuture.supplyAsync(() -> rows.values().map(row -> {
      Thread.sleep(1 + row.rows % 2); // a reducer takes a while
      return row;
    }).collect());
    if (moment != Moment.NEXT_JOB) {
      while (!ended.enough.await(100, TimeUnit.MILLISECONDS) && !job.isDone()) {
        // the job goes on
      }
      kill(random);
    }
    try {
      kind.check(job.get(), MAPS, of);
      return true;
    } catch (ExecutionException e) {
      String error = String.valueOf(e.getCause().getMessage());
      boolean mayFail = moment == Moment.REDUCERS || moment == Moment.NEXT_JOB;
      boolean saysWhy = e.getCause() instanceof SparkException
          && error.contains("has run again and has not written what it wrote before");
      assertTrue(mayFail && saysWhy, of + ": " + error);
      kind.check(rows.values().collect(), MAPS, of + ", run again");
      return false;
    } finally {
      cluster.context.sc().removeSparkListener(ended);
    }
  }

  private static void kill(Random random) throws InterruptedException {
    List<ProcessHandle> executors = TestCluster.executors();
    executors.get(random.nextInt(executors.size())).destroyForcibly();
  }

  /** Counts ended tasks of the stage that follows {@code stages} others. */
  private static final class Ended extends SparkListener {
    final CountDownLatch enough;
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
      if (stagesBefore <= 0 && end.reason().toString().equals("Success")) {
        enough.countDown();
      }
    }
  }
}
