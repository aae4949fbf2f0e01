package org.apache.spark.shuffle.gristmill;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.SparkConf;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * One executor, two, or all are decommissioned at random moments, and in some runs one is killed on top. The answer is
 * right each time; and no map runs twice if none was killed and another executor was left.
 */
class LeavingFaultsTest {
  /** The moment at which executors are decommissioned. */
  private enum Moment {
    MAPS, REDUCERS, NEXT_JOB
  }

  /** The way to recover, and whether Spark asks an executor that is decommissioned for its shuffle blocks. */
  enum Cluster {
    RECOMPUTE(Recovery.RECOMPUTE, true), RESEND(Recovery.RESEND, true), REPLICATE(Recovery.REPLICATE, true), NOT_ASKED(Recovery.RECOMPUTE, false);

    final Recovery recovery;
    final boolean asked;

    Cluster(Recovery recovery, boolean asked) {
      this.recovery = recovery;
      this.asked = asked;
    }
  }

  private static final class Seeded extends Leaving {
    final boolean asked;

    Seeded(Cluster cluster) {
      super(cluster.recovery);
      asked = cluster.asked;
    }

    @Override
    SparkConf settings() {
      return super.settings().set("spark.storage.decommission.shuffleBlocks.enabled", String.valueOf(asked));
    }

    void run(int seed, String of) throws Exception {
      Random random = new Random(seed);
      Moment moment = Moment.values()[seed % Moment.values().length];
      int leavers = seed % 8 == 0 ? EXECUTORS : 1 + seed / 3 % 2;
      boolean kills = seed % 5 == 0;
      String what = of + ", seed " + seed + ": " + leavers + " decommissioned in " + moment + (kills ? ", one killed" : "");
      System.out.println(what);
      cluster.awaitExecutors(EXECUTORS);
      Job job = new Job(seed, moment == Moment.MAPS ? 150 : 0, moment == Moment.REDUCERS ? 20 : 0);
      CompletableFuture<Void> running = moment == Moment.NEXT_JOB
          ? CompletableFuture.runAsync(() -> job.check(what))
          : running(job, moment == Moment.MAPS, 1 + random.nextInt(moment == Moment.MAPS ? MAPS : 3), what);
      if (moment == Moment.NEXT_JOB) {
        running.get();
      }
      Map<String, ProcessHandle> processes = processes();
      List<String> executors = new ArrayList<>(processes.keySet());
      Collections.shuffle(executors, random);
      List<String> leaving = executors.subList(0, Math.min(leavers, executors.size()));
      for (String executor : leaving) {
        decommission(executor);
        Thread.sleep(random.nextInt(100));
      }
      if (kills) {
        processes.get(executors.get(random.nextInt(executors.size()))).destroyForcibly();
      }
      running.get();
      for (String executor : leaving) {
        awaitEnd(executor, processes.get(executor));
      }
      job.check(what + ", again");
      if (!kills && leavers < EXECUTORS && asked) {
        job.noMapHasRunTwice(what);
      }
    }
  }

  /** One kind where {@code mvn verify} runs one seed, since each needs a cluster of its own. */
  static List<Cluster> kinds() {
    return Faults.RUNS > 1 ? List.of(Cluster.values()) : List.of(Cluster.RESEND);
  }

  @ParameterizedTest
  @MethodSource("kinds")
  void executorsDecommissionedAtRandomMomentsDoNotChangeTheAnswer(Cluster kind) throws Exception {
    Seeded seeded = new Seeded(kind);
    seeded.start();
    try {
      for (int seed = Faults.FIRST_SEED; seed < Faults.FIRST_SEED + Faults.RUNS; seed++) {
        seeded.run(seed, kind.name());
      }
    } finally {
      seeded.stop();
    }
  }
}
