package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * With spark.decommission.enabled every shuffle fell back to the sort shuffle, because partitions did not move off an
 * executor that left.
 */
class LeavingTest extends Leaving {
  LeavingTest() {
    super(Recovery.RECOMPUTE);
  }

  @BeforeEach
  void awaitExecutors() throws Exception {
    cluster.awaitExecutors(EXECUTORS);
  }

  @Test
  void anExecutorDecommissionedBetweenTwoJobsLeavesItsPartitionsToOthers() throws Exception {
    Job job = new Job(1, 0, 0);
    job.check("before");
    Map<String, ProcessHandle> processes = processes();
    String leaver = job.executors().iterator().next();
    signal("PWR", processes.get(leaver)); // as a script does before it takes a machine away
    awaitEnd(leaver, processes.get(leaver));
    job.check("after");
    job.noMapHasRunTwice("decommissioned between two jobs");
  }

  @Test
  void anExecutorDecommissionedWhileMapsRunCostsNoMap() throws Exception {
    Job job = new Job(2, 200, 0);
    Map<String, ProcessHandle> processes = processes();
    String leaver = processes.keySet().iterator().next();
    CompletableFuture<Void> done = running(job, true, 5, "while maps run");
    decommission(leaver);
    done.get();
    awaitEnd(leaver, processes.get(leaver));
    job.check("after");
    job.noMapHasRunTwice("decommissioned while maps run");
  }

  @Test
  void anExecutorKilledWhileItHandsOverIsLostAsAnyOther() throws Exception {
    Job job = new Job(5, 0, 0);
    job.check("before");
    long lost = cluster.coordinator().counters().homesLost();
    killWhileItHandsOver(job.executors().iterator().next());
    job.check("after");
    assertTrue(cluster.coordinator().counters().homesLost() > lost);
  }
}
