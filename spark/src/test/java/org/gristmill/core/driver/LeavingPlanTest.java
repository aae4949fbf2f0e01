package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

/**
 * The plans of a shuffle whose executors are being decommissioned, and what is lost if they die before they have handed
 * over.
 */
class LeavingPlanTest {
  private static final Digest SAME = new Digest(10, 12, 34, 0, false, List.of());
  private final RecordingDriver driver = new RecordingDriver();
  private Coordinator coordinator = coordinator(Recovery.RECOMPUTE);

  private Coordinator coordinator(Recovery recovery) {
    return new Coordinator(driver, driver, 0.5, recovery, false);
  }

  /** Two maps have written six partitions: the plan is a, a, b, b, c, c. */
  private void written() {
    for (String id : List.of("a", "b", "c")) {
      coordinator.executorAdded(new Executor(id, "host" + id, 1));
    }
    coordinator.shuffleAdded(1, 2, 6, () -> true);
    for (int map = 0; map < 2; map++) {
      coordinator.start(1, map, map, "a");
      assertTrue(coordinator.commit(1, map, 10, 10, new long[] {10, 10, 10, 10, 10, 10}, SAME).accepted());
      coordinator.taskSucceeded(map);
    }
    coordinator.flushed(1, List.of(0L, 1L));
    assertArrayEquals(new String[] {"a", "a", "b", "b", "c", "c"}, plan().homes());
  }

  private Plan plan() {
    return coordinator.placed(1).plan();
  }

  private static BitSet bits(int... set) {
    BitSet bits = new BitSet();
    Arrays.stream(set).forEach(bits::set);
    return bits;
  }

  @Test
  void theLeavingExecutorSendsItsPartitionsToNewHomesAndItsEndLosesNothing() {
    written();
    Map<Integer, Integer> epochs = coordinator.leaving("b");
    assertArrayEquals(new String[] {"a", "a", "a", "c", "c", "c"}, plan().homes());
    PlanUpdate told = driver.published.get(driver.published.size() - 1);
    assertEquals(List.of("b", bits(2, 3)), List.of(told.leaving(), told.refill()));
    coordinator.handedOver(1, "b", epochs.get(1));
    assertEquals("move from b to [a, a, a, c, c, c]", driver.done.get(driver.done.size() - 1));
    coordinator.executorLost("b");
    assertTrue(coordinator.start(1, 0, 7, "a").nothing());
    assertEquals(0, coordinator.counters().homesLost());
  }

  @Test
  void itsDeathBeforeEverythingHasArrivedLosesWhatItHadToSend() {
    written();
    coordinator.leaving("b");
    coordinator.executorLost("b");
    assertEquals(new Emission(false, bits(2, 3), 0), coordinator.start(1, 0, 7, "a"));
    assertEquals(1, coordinator.counters().homesLost());
  }

  /** A second plan gives an executor more to send while it is at the first. */
  @Test
  void aReportOnAnOlderPlanDoesNotEndTheHandOver() {
    HandOvers handOvers = new HandOvers();
    handOvers.begin("b", 2, bits(2));
    handOvers.begin("b", 3, bits(5));
    handOvers.finished("b", 2);
    assertEquals(bits(2, 5), handOvers.failed("b"));
  }

  @Test
  void twoThatLeaveAtTheSameTimeDoNotSendToEachOther() {
    written();
    coordinator.leaving("b");
    int epoch = coordinator.leaving("c").get(1);
    assertArrayEquals(new String[] {"a", "a", "a", "a", "a", "a"}, plan().homes());
    coordinator.handedOver(1, "b", epoch);
    coordinator.executorLost("b");
    assertTrue(coordinator.start(1, 0, 7, "a").nothing());
    coordinator.executorLost("c"); // it had to send its own, and partition 3, which b was sending to it
    assertEquals(bits(3, 4, 5), coordinator.start(1, 0, 8, "a").partitions());
  }

  @Test
  void theLastExecutorKeepsItsPartitionsUntilAnotherOneComes() {
    written();
    for (String id : List.of("a", "b", "c")) {
      coordinator.leaving(id);
    }
    assertTrue(Arrays.asList(plan().homes()).contains("c"));
    coordinator.executorAdded(new Executor("d", "hostd", 1));
    coordinator.leaving("c");
    assertFalse(Arrays.asList(plan().homes()).contains("c"));
  }

  /**
   * Senders' copies for the replica reach it, and what they have queued for the home goes there too: it is complete
   * without the leaver.
   */
  @Test
  void aReplicaTakesOverAndNothingIsHandedOver() {
    coordinator = coordinator(Recovery.REPLICATE);
    written();
    Plan before = plan();
    coordinator.leaving("b");
    for (int p = 0; p < 6; p++) {
      assertEquals(before.homes()[p].equals("b") ? before.replicas()[p] : before.homes()[p], plan().homes()[p]);
      assertEquals(before.homes()[p].equals("b") || before.replicas()[p].equals("b") ? "" : before.replicas()[p], plan().replicas()[p]);
    }
    assertEquals(new BitSet(), driver.published.get(driver.published.size() - 1).refill());
    coordinator.executorLost("b");
    assertTrue(coordinator.start(1, 0, 7, "a").nothing());
  }

  @Test
  void aMapStatusDoesNotNameAnExecutorThatIsLeaving() {
    written();
    coordinator.leaving("b");
    coordinator.start(1, 0, 7, "b");
    assertEquals("a", coordinator.commit(1, 7, 10, 10, new long[] {10, 10, 10, 10, 10, 10}, SAME).location().id());
  }
}
