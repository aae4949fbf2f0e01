package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.IntPredicate;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Placement;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

class CoordinatorTest {
  private static final Digest SAME = new Digest(10, 12, 34, 0, false, List.of());
  private final RecordingDriver driver = new RecordingDriver();
  private final List<String> done = driver.done;
  private final List<Plan> plans = driver.plans;
  private final List<PlanUpdate> published = driver.published;
  private Coordinator coordinator = coordinator(0.5, Recovery.RECOMPUTE);

  private Coordinator coordinator(double planShare, Recovery recovery) {
    return new Coordinator(driver, driver, planShare, recovery, false);
  }

  private void executors(String... ids) {
    for (String id : ids) {
      coordinator.executorAdded(new Executor(id, "host" + id, 1));
    }
  }

  private void map(int index, long attempt, String executor, long... sizes) {
    coordinator.start(1, index, attempt, executor);
    assertTrue(coordinator.commit(1, attempt, 10, 10, sizes, SAME).accepted());
    coordinator.taskSucceeded(attempt);
  }

  /**
   * A map task failed after its commit. Its next attempt did not run the map, so its metrics and accumulators were
   * lost.
   */
  @Test
  void aMapInheritsOnlyFromAnAttemptWhoseTaskHasSucceeded() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    coordinator.start(1, 0, 5, "a");
    assertTrue(coordinator.commit(1, 5, 10, 10, new long[] {100, 100}, SAME).accepted());
    assertEquals(Emission.ALL, coordinator.start(1, 0, 6, "b"));
    coordinator.taskSucceeded(5);
    assertTrue(coordinator.start(1, 0, 7, "b").nothing());
  }

  private Plan last() {
    return plans.get(plans.size() - 1);
  }

  @Test
  void thePlanComesAfterTheShareOfMapsAndCoversEveryPartition() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 10, 4, () -> true);
    for (int m = 0; m < 4; m++) {
      map(m, m, "a", 100, 10, 10, 90);
    }
    assertEquals(List.of(), plans);
    map(4, 4, "b", 100, 10, 10, 90);
    assertEquals(1, plans.size());
    String[] homes = last().homes();
    assertNotEquals(homes[0], homes[3]);
    assertTrue(Arrays.stream(homes).allMatch(h -> h.equals("a") || h.equals("b")));
  }

  /** Zipf sizes, noise of a fifth on every map, the plan made after an eighth of the maps. */
  @Test
  void predictedPlacementOfSkewedPartitionsIsWithinATenthOfTheMean() {
    executors("a", "b", "c", "d");
    Coordinator early = coordinator(0.125, Recovery.RECOMPUTE);
    List.of("a", "b", "c", "d").forEach(id -> early.executorAdded(new Executor(id, "host", 1)));
    early.shuffleAdded(1, 64, 100, () -> true);
    Random random = new Random(3);
    long[] truth = new long[100];
    for (int m = 0; m < 64; m++) {
      long[] sizes = new long[100];
      for (int p = 0; p < 100; p++) {
        sizes[p] = (long) (1e6 / (p + 1) * (0.9 + 0.2 * random.nextDouble()));
        truth[p] += sizes[p];
      }
      early.start(1, m, m, "a");
      early.commit(1, m, 10_000, 100, sizes, SAME);
    }
    assertEquals(1, plans.size());
    int[] home = Arrays.stream(last().homes()).mapToInt("abcd"::indexOf).toArray();
    double ours = Placement.imbalance(home, truth, 4);
    double roundRobin = Placement.imbalance(Placement.roundRobin(100, 4), truth, 4);
    assertTrue(ours <= 1.1 && roundRobin > 1.3, "ours " + ours + " round robin " + roundRobin);
  }

  /** As the two sides of a join: hashed sizes that differ by a tenth lie alike, in order. */
  @Test
  void evenPartitionsOfTwoShufflesLieAlikeWithNeighboursTogether() {
    executors("a", "b", "c");
    Random random = new Random(5);
    for (int shuffle = 1; shuffle <= 2; shuffle++) {
      coordinator.shuffleAdded(shuffle, 4, 24, () -> true);
      for (int m = 0; m < 4; m++) {
        coordinator.start(shuffle, m, m, "a");
        coordinator.commit(shuffle, m, 1000, 100, random.longs(24, 950, 1050).toArray(), SAME);
      }
    }
    String inOrder = "a".repeat(8) + "b".repeat(8) + "c".repeat(8);
    assertEquals(List.of(inOrder, inOrder), plans.stream().map(plan -> String.join("", plan.homes())).toList());
  }

  @Test
  void aSlowNodeIsGivenLess() {
    assertEquals(24, partitionsAtFirstOfTwo(m -> m % 2 != 0), 1);
  }

  /** On a busy machine single maps take several times as long as others. */
  @Test
  void aNodeWithSomeSlowMapsIsGivenAsMuchAsTheOther() {
    assertEquals(15, partitionsAtFirstOfTwo(m -> m % 2 != 0 && m != 7));
  }

  /**
   * Counts those of 30 equal partitions at the first node, after maps on two in turns; slow ones take four times as
   * long.
   */
  private long partitionsAtFirstOfTwo(IntPredicate isSlow) {
    executors("a", "b");
    coordinator.shuffleAdded(1, 16, 30, () -> true);
    long[] sizes = new long[30];
    Arrays.fill(sizes, 100);
    for (int m = 0; m < 8; m++) {
      coordinator.start(1, m, m, m % 2 == 0 ? "a" : "b");
      coordinator.commit(1, m, 1000, isSlow.test(m) ? 400 : 100, sizes.clone(), SAME);
    }
    return Arrays.stream(last().homes()).filter("a"::equals).count();
  }

  @Test
  void reportedSizesAddUpAndEveryPartitionsHomeReportsMostOfIt() {
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 30, 6, () -> true);
    long[] truth = new long[6];
    long[] reported = new long[6];
    long[][] byHome = new long[6][3];
    for (int m = 0; m < 30; m++) {
      long[] sizes = {1000 + m, 2000, 500, m % 3 == 0 ? 0 : 700, 1, 40};
      coordinator.start(1, m, m, "a");
      Coordinator.CommitResult commit = coordinator.commit(1, m, 10, 10, sizes.clone(), SAME);
      for (int p = 0; p < 6; p++) {
        truth[p] += sizes[p];
        reported[p] += commit.sizes()[p];
        byHome[p]["abc".indexOf(commit.location().id())] += commit.sizes()[p];
        assertEquals(sizes[p] == 0, commit.sizes()[p] == 0, "empty stays empty and the other way round");
      }
    }
    assertArrayEquals(truth, reported);
    for (int p : new int[] {0, 1, 2, 3, 5}) {
      int home = "abc".indexOf(last().homes()[p]);
      assertTrue(byHome[p][home] > 0.5 * truth[p], "partition " + p + ": " + Arrays.toString(byHome[p]));
    }
  }

  /** As where data is sorted already, and the last map has found nothing. */
  @Test
  void sizesAddUpThoughEachMapWritesOnePartitionAndTheLastNone() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 7, 4, () -> true);
    long[] reported = new long[4];
    long[] said = new long[4];
    for (int m = 0; m < 7; m++) {
      long[] sizes = new long[4];
      sizes[m % 4] = m < 6 ? 1000 : 0;
      coordinator.start(1, m, m, "a");
      said = coordinator.commit(1, m, 10, 10, sizes.clone(), SAME).sizes();
      for (int p = 0; p < 4; p++) {
        reported[p] += said[p];
      }
    }
    assertArrayEquals(new long[] {2000, 2000, 1000, 1000}, reported);
    assertArrayEquals(new long[] {0, 0, 999, 0}, said);
    Lineage lineage = coordinator.locate(1, 0, 4, 99, 0, 0).lineage();
    for (int p = 0; p < 4; p++) {
      assertEquals(said[p] > 0, lineage.writer(6, p) == Emission.NOBODY, "no reader waits for what the last map has not written");
    }
  }

  /**
   * Nothing is gained by naming homes then, and adaptive execution cuts skewed partitions by the sizes of single maps.
   */
  @Test
  void withOneExecutorSizesAreReportedAsTheyAre() {
    executors("a");
    coordinator.shuffleAdded(1, 3, 2, () -> true);
    for (int m = 0; m < 3; m++) {
      coordinator.start(1, m, m, "a");
      assertArrayEquals(new long[] {100 + m, 0}, coordinator.commit(1, m, 10, 10, new long[] {100 + m, 0}, SAME).sizes());
    }
  }

  @Test
  void anAttemptThatInheritsNothingHasNoBase() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 2, 2, () -> true);
    map(0, 0, "a", 10, 10);
    map(1, 1, "a", 10, 0); // its status reports what map 0 has written into the second partition
    String second = last().homes()[1];
    coordinator.executorLost("b");
    coordinator.start(1, 1, 2, "a");
    assertEquals(second.equals("b") ? 2 : Emission.NOBODY, coordinator.locate(1, 0, 2, 99, 0, 0).lineage().writer(2, 1));
  }

  /** As Spark's SQL does it: what a query has shuffled is removed, and its plan may run again. */
  @Test
  void aRemovedShuffleMayBeWrittenAgainUnlessItsDependencyIsCollected() {
    executors("a", "b");
    boolean[] collected = {false};
    coordinator.shuffleAdded(1, 2, 2, new Dependency() {
      @Override
      public boolean isDeterminate() {
        return true;
      }

      @Override
      public boolean isCollected() {
        return collected[0];
      }
    });
    map(0, 0, "a", 10, 10);
    map(1, 1, "b", 10, 10);
    int epoch = last().epoch();
    coordinator.start(1, 1, 2, "b");
    coordinator.shuffleRemoved(1);
    assertFalse(coordinator.commit(1, 2, 10, 10, new long[] {10, 10}, SAME).accepted(), "it began before");
    assertFalse(coordinator.missing(1, 0, Map.of(0, 0L, 1, 1L), "a", "nothing is here"));
    assertEquals(List.of("unregister [0, 1]"), done);
    assertEquals(Emission.ALL, coordinator.start(1, 0, 3, "a"));
    assertTrue(coordinator.commit(1, 3, 10, 10, new long[] {10, 10}, SAME).accepted());
    map(1, 4, "b", 10, 10);
    assertTrue(last().epoch() > epoch, "late news of the first plan are known to be old");
    coordinator.shuffleRemoved(1);
    collected[0] = true;
    coordinator.shuffleAdded(2, 1, 1, () -> true);
    assertThrows(IllegalStateException.class, () -> coordinator.start(1, 0, 5, "a"));
    assertFalse(coordinator.has(1));
  }

  /**
   * Of four statuses the first can name no home: there is no plan yet. The last one reports what is left, wherever that
   * lives.
   */
  @Test
  void fewMapsAreEnoughToNameEveryHome() {
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 4, 3, () -> true);
    long[] atHome = new long[3];
    for (int m = 0; m < 4; m++) {
      coordinator.start(1, m, m, "a");
      Coordinator.CommitResult commit = coordinator.commit(1, m, 10, 10, new long[] {1000, 1000, 1000}, SAME);
      for (int p = 0; p < 3; p++) {
        atHome[p] += plans.isEmpty() || !last().homes()[p].equals(commit.location().id()) ? 0 : commit.sizes()[p];
      }
    }
    assertEquals(Set.of("a", "b", "c"), Set.of(last().homes()));
    assertTrue(Arrays.stream(atHome).allMatch(bytes -> bytes > 1900), Arrays.toString(atHome));
  }

  @Test
  void aLostHomeTaintsItsPartitionsAndARerunMakesOnlyThose() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 2, 4, () -> true);
    map(0, 0, "a", 10, 10, 10, 10);
    map(1, 1, "a", 10, 10, 10, 10);
    BitSet tainted = new BitSet();
    for (int p = 0; p < 4; p++) {
      tainted.set(p, last().homes()[p].equals("b"));
    }
    assertEquals(2, tainted.cardinality());
    coordinator.executorLost("b");
    assertEquals(List.of("unregister [0, 1]"), done);
    assertEquals(2, last().epoch());
    assertTrue(Arrays.stream(last().homes()).allMatch("a"::equals));
    assertEquals(new Emission(false, tainted, 0), coordinator.start(1, 0, 7, "a"));
    Lineage lineage = coordinator.locate(1, 0, 4, 99, 0, 0).lineage();
    for (int p = 0; p < 4; p++) {
      assertEquals(tainted.get(p) ? 7 : 0, lineage.writer(7, p));
    }
  }

  @Test
  void aPartialAttemptReportsTheSizesThatItInherits() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    map(0, 0, "a", 1000, 1000);
    int lost = last().homes()[0].equals("b") ? 0 : 1;
    coordinator.executorLost("b");
    coordinator.start(1, 0, 1, "a");
    long[] sizes = new long[2];
    sizes[lost] = 1000;
    long[] reported = coordinator.commit(1, 1, 10, 10, sizes, SAME).sizes();
    assertEquals(1000, reported[1 - lost], 100);
    assertEquals(1000, reported[lost]);
  }

  @Test
  void anIndeterminateStageInheritsNothing() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 1, 2, () -> false);
    map(0, 0, "a", 10, 10);
    coordinator.executorLost("b");
    assertEquals(Emission.ALL, coordinator.start(1, 0, 1, "a"));
  }

  @Test
  void pagesThatHadNotLeftALostExecutorAreMadeAgainWhole() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 4, 2, () -> true);
    map(0, 0, "b", 10, 10);
    map(1, 1, "a", 10, 10);
    coordinator.executorLost("b"); // before there is a plan, so b is no home
    assertEquals(List.of("unregister [0]"), done);
    assertEquals(Emission.ALL, coordinator.start(1, 0, 5, "a"));
  }

  @Test
  void outputFlushedBeforeItsSenderWasLostStays() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    map(0, 0, "b", 10, 10);
    coordinator.flushed(1, coordinator.flushBegins(1).get("b"));
    int kept = last().homes()[0].equals("a") ? 0 : 1;
    coordinator.executorLost("b");
    assertFalse(coordinator.start(1, 0, 5, "a").includes(kept));
  }

  /** It wrote to the lost home, so it must not win. */
  @Test
  void anAttemptThatRanWhileAHomeWasLostIsNotAccepted() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 4, 2, () -> true);
    coordinator.placed(1);
    coordinator.start(1, 0, 0, "a");
    coordinator.executorLost("b");
    assertFalse(coordinator.commit(1, 0, 10, 10, new long[] {5, 5}, SAME).accepted());
    map(0, 1, "a", 5, 5);
  }

  @Test
  void aReadersReportUnregistersExactlyWhatIsMissing() {
    executors("a", "b");
    coordinator.shuffleAdded(1, 2, 2, () -> true);
    map(0, 0, "a", 10, 10);
    map(1, 1, "a", 10, 10);
    coordinator.missing(1, 1, Map.of(1, 1L), null, "test");
    assertEquals(List.of("unregister [1]"), done);
    BitSet one = new BitSet();
    one.set(1);
    assertEquals(new Emission(false, one, 1), coordinator.start(1, 1, 2, "a"));
    assertTrue(coordinator.start(1, 0, 3, "a").nothing());
  }

  @Test
  void aHomeThatCannotStoreIsNotChosenAgainForThatShuffle() {
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 1, 6, () -> true);
    map(0, 0, "a", 1, 1, 1, 1, 1, 1);
    coordinator.homeLost(1, "b", "disk full");
    assertFalse(Arrays.asList(last().homes()).contains("b"));
    coordinator.homeLost(1, "c", "disk full");
    assertTrue(Arrays.stream(last().homes()).allMatch("a"::equals));
  }

  @Test
  void theOnlyExecutorStaysHomeThoughItCannotStoreUntilAnotherComes() {
    executors("a");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    map(0, 0, "a", 1, 1);
    coordinator.homeLost(1, "a", "disk full");
    assertTrue(Arrays.stream(last().homes()).allMatch("a"::equals));
    executors("b");
    assertTrue(Arrays.stream(last().homes()).allMatch("b"::equals));
  }

  @Test
  void homesLostWithTheLastExecutorMoveWhenOneComesBack() {
    executors("a");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    map(0, 0, "a", 1, 1);
    coordinator.executorLost("a");
    executors("z");
    assertTrue(Arrays.stream(last().homes()).allMatch("z"::equals));
    assertEquals("unregister [0]", done.get(done.size() - 1));
  }

  /** Maps ran on a and c; b is lost with its partitions, then a too. */
  @Test
  void withResendOnlyTheMapsOfLostSendersAreMadeAgain() {
    coordinator = coordinator(0.5, Recovery.RESEND);
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 4, 6, () -> true);
    for (int m = 0; m < 4; m++) {
      map(m, m, m == 0 ? "a" : "c", 10, 10, 10, 10, 10, 10);
    }
    flush("a", "b", "c");
    BitSet atB = at("b");
    coordinator.executorLost("b");
    assertEquals(List.of(), done);
    assertEquals(atB, published.get(published.size() - 1).refill());
    assertTrue(coordinator.start(1, 0, 10, "c").nothing());
    flush("a", "c");
    BitSet atA = at("a");
    coordinator.executorLost("a");
    assertEquals("unregister [0, 10]", done.get(done.size() - 1), "the attempt of a, and the one that inherits from it");
    assertEquals(new Emission(false, atA, 0), coordinator.start(1, 0, 11, "c"));
    assertTrue(coordinator.start(1, 1, 12, "c").nothing());
  }

  @Test
  void outputThatIsBeingSentAgainIsLostWithItsSender() {
    coordinator = coordinator(0.5, Recovery.RESEND);
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 1, 6, () -> true);
    map(0, 0, "a", 10, 10, 10, 10, 10, 10);
    flush("a", "b", "c");
    coordinator.executorLost("b");
    coordinator.executorLost("a");
    assertEquals(List.of("unregister [0]"), done);
    assertEquals(Emission.ALL, coordinator.start(1, 0, 1, "c"));
  }

  /** It wrote to the lost home, but what it wrote is sent again. */
  @Test
  void withResendAnAttemptThatRanWhileAHomeWasLostIsAccepted() {
    coordinator = coordinator(0.5, Recovery.RESEND);
    executors("a", "b");
    coordinator.shuffleAdded(1, 4, 2, () -> true);
    coordinator.placed(1);
    coordinator.start(1, 0, 0, "a");
    coordinator.executorLost("b");
    assertTrue(coordinator.commit(1, 0, 10, 10, new long[] {5, 5}, SAME).accepted());
  }

  @Test
  void aReaderLooksAgainWhereSegmentsAreSentAgainAndElseNot() {
    coordinator = coordinator(0.5, Recovery.RESEND);
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 1, 3, () -> true);
    map(0, 0, "a", 10, 10, 10);
    String home = last().homes()[0];
    assertTrue(coordinator.missing(1, 0, Map.of(0, 0L), home, "cannot be read"));
    assertNotEquals(home, last().homes()[0]);
    assertTrue(coordinator.missing(1, 0, Map.of(0, 0L), home, "cannot be read"), "an old report, nothing to do");
    assertEquals(List.of(), done);
    assertFalse(coordinator.missing(1, 0, Map.of(0, 0L), null, "a flipped byte"));
    assertEquals(List.of("unregister [0]"), done);
  }

  /** A shuffle whose map ran again before the others had ended was never counted as written. */
  @Test
  void aShuffleIsWrittenOnceEveryMapHasCommittedWhateverWasLostMeanwhile() {
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 2, 3, () -> true);
    map(0, 0, "a", 10, 10, 10);
    coordinator.executorLost("a");
    map(0, 1, "b", 10, 10, 10);
    assertEquals(0, coordinator.counters().shufflesWritten());
    map(1, 2, "b", 10, 10, 10);
    assertEquals(1, coordinator.counters().shufflesWritten());
    coordinator.executorLost("c");
    map(0, 3, "b", 10, 10, 10);
    assertEquals(1, coordinator.counters().shufflesWritten(), "it was written before");
  }

  /**
   * Spark gives a stage four attempts: a job whose files were damaged at two homes, found one after the other, ended
   * with the fourth.
   */
  @Test
  void fromTheSecondCorruptSegmentOnItsHomeCountsAsLost() {
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 2, 3, () -> true);
    map(0, 0, "a", 10, 10, 10);
    map(1, 1, "b", 10, 10, 10);
    String[] homes = last().homes().clone();
    assertEquals(3, Set.copyOf(Arrays.asList(homes)).size());
    coordinator.corrupt(1, 0, 0, Map.of(0, 0L, 1, 1L), homes[0], "a flipped byte");
    coordinator.corrupt(1, 0, 0, Map.of(0, 0L, 1, 1L), homes[0], "the same, seen by another task");
    assertArrayEquals(homes, last().homes(), "one segment is bad, and only its map runs again");
    List<String> warnings = done.stream().filter(line -> line.startsWith("warn")).toList();
    assertEquals(List.of("warn shuffle 1 partition 0: a flipped byte; map 0 runs again. Check its disks and the network"), warnings);
    assertTrue(done.contains("unregister [0]"), done.toString());
    coordinator.corrupt(1, 1, 1, Map.of(0, 0L, 1, 1L), homes[1], "a flipped byte");
    assertNotEquals(homes[1], last().homes()[1]);
    assertEquals(homes[0], last().homes()[0]);
    coordinator.corrupt(1, 0, 1, Map.of(0, 0L, 1, 1L), homes[0], "a flipped byte");
    assertNotEquals(homes[0], last().homes()[0]);
    assertEquals(3, done.stream().filter(line -> line.startsWith("warn shuffle 1 partition")).count());
  }

  /**
   * Where a home has had a partition before there may still be broken pieces, which a second copy would not replace.
   */
  @Test
  void nothingIsSentAgainToAHomeThatHasLostThePartitionBefore() {
    coordinator = coordinator(0.5, Recovery.RESEND);
    executors("a", "b");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    map(0, 0, "a", 10, 10);
    coordinator.homeLost(1, "a", "disk full");
    assertEquals(1, published.get(published.size() - 1).refill().cardinality());
    coordinator.homeLost(1, "b", "disk full");
    assertEquals(0, published.get(published.size() - 1).refill().cardinality());
    assertEquals(List.of("unregister [0]"), done);
  }

  @Test
  void aReplicaTakesOverAndNothingIsLostUntilItIsLostToo() {
    coordinator = coordinator(0.5, Recovery.REPLICATE);
    executors("a", "b", "c");
    coordinator.shuffleAdded(1, 1, 6, () -> true);
    map(0, 0, "c", 10, 10, 10, 10, 10, 10);
    flush("a", "b", "c");
    Plan first = last();
    BitSet exposed = new BitSet();
    for (int p = 0; p < 6; p++) {
      assertNotEquals(first.homes()[p], first.replicas()[p]);
      assertTrue(first.hasReplica(p));
      exposed.set(p, first.homes()[p].equals("b") || first.replicas()[p].equals("b"));
    }
    coordinator.executorLost("b");
    for (int p = 0; p < 6; p++) {
      assertEquals(first.homes()[p].equals("b") ? first.replicas()[p] : first.homes()[p], last().homes()[p]);
      assertEquals(!exposed.get(p), last().hasReplica(p));
    }
    assertEquals(List.of(), done);
    BitSet lost = at("a");
    lost.and(exposed);
    coordinator.executorLost("a");
    assertEquals(List.of("unregister [0]"), done);
    assertEquals(new Emission(false, lost, 0), coordinator.start(1, 0, 1, "c"));
  }

  private void flush(String... executors) {
    Map<String, List<Long>> covered = coordinator.flushBegins(1);
    assertEquals(Set.of(executors), covered.keySet());
    covered.values().forEach(attempts -> coordinator.flushed(1, attempts));
  }

  private BitSet at(String home) {
    BitSet found = new BitSet();
    for (int p = 0; p < last().homes().length; p++) {
      found.set(p, last().homes()[p].equals(home));
    }
    return found;
  }
}
