package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A map drew random keys, an executor died, and the map ran again for the lost partitions only: rows were missing and
 * others came twice, and nothing was said. A map that runs again is now compared with what it wrote before.
 */
class RedoTest {
  private static final Digest FIRST = new Digest(10, 12, 34, 77, false, List.of());
  private static final Digest OTHER = new Digest(10, 21, 43, 78, false, List.of());
  private static final Digest OTHER_VALUES = new Digest(10, 12, 43, 78, false, List.of());
  private final Set<Long> elsewhere = new HashSet<>();
  private final Set<Long> lateStatuses = new HashSet<>();
  private long trackerEpoch = 1;
  private final RecordingDriver driver = new RecordingDriver() {
    @Override
    public boolean unregister(int shuffle, Set<Long> attempts) {
      done.add("unregister " + shuffle + " " + new TreeSet<>(attempts));
      trackerEpoch++;
      return lateStatuses.removeAll(attempts);
    }

    @Override
    public boolean unregisterAnywhere(long attempt) {
      return elsewhere.remove(attempt);
    }

    @Override
    public long trackerEpoch() {
      return trackerEpoch;
    }

    @Override
    public void fail(int stage, String reason) {
      done.add("fail stage " + stage);
      done.add("by " + reason.substring(0, reason.indexOf(" has run again")));
      assertTrue(reason.contains("checkpoint()")
          && reason.contains("spark.gristmill.recovery=replicate"), reason);
      assertTrue(("Job aborted due to stage failure: " + reason).length() < 300, reason);
    }
  };
  private final List<String> done = driver.done;
  private Coordinator coordinator = new Coordinator(driver, driver, 0.5, Recovery.RECOMPUTE, false);

  /**
   * One map of two partitions, one at each executor; a is lost with its partition after the map was written and
   * delivered.
   */
  @BeforeEach
  void aMapIsWritten() {
    executor("a");
    executor("b");
    coordinator.shuffleAdded(1, 1, 2, () -> true);
    coordinator.start(1, 0, 0, "b");
    assertTrue(commit(1, 0, FIRST));
    coordinator.flushBegins(1).forEach((executor, attempts) -> coordinator.flushed(1, attempts));
  }

  private void executor(String id) {
    coordinator.executorAdded(new Executor(id, "host", 1));
  }

  private boolean commit(int shuffle, long attempt, Digest digest) {
    boolean accepted = coordinator.commit(shuffle, attempt, 10, 10, new long[] {5, 5}, digest).accepted();
    if (accepted) {
      coordinator.taskSucceeded(attempt);
    }
    return accepted;
  }

  private boolean reads(long attempt, int stage) {
    return coordinator.locate(1, 0, 2, attempt, stage, trackerEpoch) != null;
  }

  @Test
  void aRedoThatWritesTheSameInheritsTheRest() {
    coordinator.executorLost("a");
    Emission emission = coordinator.start(1, 0, 1, "b");
    assertEquals(1, emission.partitions().cardinality());
    assertTrue(commit(1, 1, FIRST));
  }

  @Test
  void aPartialRedoThatWritesSomethingElseIsRefusedAndTheNextOneWritesAll() {
    coordinator.executorLost("a");
    assertFalse(coordinator.start(1, 0, 1, "b").all());
    assertFalse(commit(1, 1, OTHER));
    assertTrue(coordinator.start(1, 0, 2, "b").all());
    assertTrue(commit(1, 2, OTHER));
    assertEquals(1, coordinator.counters().outputsReplaced());
    assertTrue(coordinator.start(1, 0, 3, "b").nothing(), "what replaced it is whole");
  }

  @Test
  void aSecondAttemptThatWritesSomethingElseStandsForTheFirstWhileThatIsWhole() {
    coordinator.shuffleAdded(2, 1, 2, () -> true);
    coordinator.start(2, 0, 5, "a");
    coordinator.start(2, 0, 6, "b"); // speculation
    assertTrue(commit(2, 5, FIRST));
    assertEquals(77, coordinator.commit(2, 6, 10, 1, new long[2], OTHER).rows(), "readers of it read the first");
    assertTrue(coordinator.start(2, 0, 7, "b").nothing());
    assertTrue(commit(2, 7, Digest.EMPTY), "it has not run, and stands for the first");
    assertEquals(77, coordinator.commit(2, 7, 0, 1, new long[2], Digest.EMPTY).rows(), "as Spark's checksum says");
  }

  @Test
  void aReaderThatIsAtWorkMustNotEndWellWhenItsInputWasReplaced() {
    long before = trackerEpoch;
    assertTrue(reads(50, 3));
    replaced();
    assertFalse(coordinator.readingEnds(1, 50));
    assertFalse(reads(50, 3), "it has read the old output already");
    assertNull(coordinator.locate(1, 0, 2, 51, 3, before), "its map statuses are older than what was replaced");
    assertTrue(reads(52, 3));
    assertTrue(coordinator.readingEnds(1, 52));
    assertFalse(done.contains("fail stage 3"));
  }

  @Test
  void theJobFailsIfAResultWasMadeFromWhatIsReplaced() {
    assertTrue(reads(50, 3));
    assertTrue(coordinator.readingEnds(1, 50));
    replaced();
    assertTrue(done.contains("fail stage 3"));
  }

  @Test
  void aWholeRedoCountsTooIfAResultWasMadeFromTheFirst() {
    coordinator.shuffleRemoved(1);
    coordinator.start(1, 0, 10, "b");
    assertTrue(commit(1, 10, FIRST));
    assertTrue(reads(50, 3));
    assertTrue(coordinator.readingEnds(1, 50));
    coordinator.executorLost("b"); // before it has delivered
    assertTrue(coordinator.start(1, 0, 11, "a").all());
    assertTrue(commit(1, 11, OTHER));
    assertTrue(done.contains("fail stage 3"));
  }

  @Test
  void resultsOfAJobThatHasEndedDoNotCount() {
    assertTrue(reads(50, 3));
    assertTrue(coordinator.readingEnds(1, 50));
    coordinator.stageDelivered(3);
    replaced();
    assertFalse(done.contains("fail stage 3"));
  }

  /** Output that a map of the next shuffle made from it is made again, and then compared itself. */
  @Test
  void mapOutputMadeFromWhatIsReplacedIsMadeAgainAndSoOnDownToTheResult() {
    coordinator.shuffleAdded(2, 1, 2, () -> true);
    assertTrue(reads(50, 2));
    coordinator.start(2, 0, 50, "b");
    assertTrue(commit(2, 50, FIRST));
    assertTrue(coordinator.readingEnds(1, 50));
    assertNotNull(coordinator.locate(2, 0, 2, 60, 3, trackerEpoch));
    assertTrue(coordinator.readingEnds(2, 60));
    replaced();
    assertTrue(done.contains("unregister 2 [50]"));
    assertFalse(done.contains("fail stage 3"), "perhaps the second map writes the same as before");
    assertTrue(coordinator.start(2, 0, 70, "b").all());
    elsewhere.add(60L);
    assertTrue(commit(2, 70, OTHER));
    assertEquals(Set.of(), elsewhere, "the output of a shuffle that is not ours was unregistered");
    assertFalse(done.contains("fail stage 3"));
  }

  @Test
  void aMapAtWorkOnWhatIsReplacedIsRefused() {
    coordinator.shuffleAdded(2, 1, 2, () -> true);
    assertTrue(reads(50, 2));
    coordinator.start(2, 0, 50, "b");
    replaced();
    assertFalse(commit(2, 50, FIRST));
  }

  @Test
  void aMapStatusOfAReplacedOutputThatComesLateIsFoundByTheNextReader() {
    replaced();
    assertTrue(reads(50, 3));
    lateStatuses.add(0L);
    assertFalse(coordinator.locate(1, 0, 2, 51, 3, trackerEpoch) != null, "it may have that status");
    assertTrue(reads(52, 3));
  }

  /** Spark runs all of such a stage again, and sees to what was made from it. */
  @Test
  void stagesThatSparkCallsIndeterminateAreLeftToSpark() {
    coordinator.shuffleAdded(2, 1, 2, () -> false);
    coordinator.start(2, 0, 5, "b");
    assertTrue(commit(2, 5, FIRST));
    assertTrue(coordinator.start(2, 0, 6, "b").all());
    assertTrue(commit(2, 6, OTHER));
    assertEquals(0, coordinator.counters().outputsReplaced());
  }

  /** A job of sums of doubles, two shuffles deep, was cancelled when an executor died after the first results. */
  @Test
  void aRedoWithTheSameKeysAndOtherValuesCountsAndIsSaidOnce() {
    assertTrue(reads(50, 3));
    assertTrue(coordinator.readingEnds(1, 50));
    coordinator.executorLost("a");
    assertFalse(coordinator.start(1, 0, 1, "b").all());
    assertTrue(commit(1, 1, OTHER_VALUES));
    assertEquals(78, coordinator.commit(1, 1, 10, 10, new long[] {5, 5}, OTHER_VALUES).rows(), "as Spark's checksum says");
    coordinator.start(1, 0, 2, "b");
    assertTrue(coordinator.readingEnds(1, 50), "what it has read stays good");
    assertFalse(done.contains("fail stage 3"));
    List<String> warnings = done.stream().filter(line -> line.startsWith("warn ")).toList();
    assertEquals(1, warnings.size());
    assertTrue(warnings.get(0).contains("spark.gristmill.redo=strict") && warnings.get(0).length() < 300, warnings.get(0));
  }

  @Test
  void otherValuesCountAsOtherKeysIfTheUserWantsItStrict() {
    coordinator = new Coordinator(driver, driver, 0.5, Recovery.RECOMPUTE, true);
    aMapIsWritten();
    assertTrue(reads(50, 3));
    assertTrue(coordinator.readingEnds(1, 50));
    coordinator.executorLost("a");
    coordinator.start(1, 0, 1, "b");
    assertFalse(commit(1, 1, OTHER_VALUES));
    assertTrue(done.contains("fail stage 3"));
  }

  /**
   * By chance the random keys of one map gave as many records in each partition as before; another map shows what they
   * are.
   */
  @Test
  void whatCountedInSpiteOfOtherValuesIsRevokedWhenKeysOfTheShuffleDiffer() {
    coordinator.executorAdded(new Executor("c", "host", 1));
    coordinator.shuffleAdded(2, 2, 3, () -> true);
    for (int map = 0; map < 2; map++) {
      coordinator.start(2, map, 20 + map, "b");
      assertTrue(coordinator.commit(2, 20 + map, 10, 10, new long[] {5, 5, 5}, FIRST).accepted());
      coordinator.taskSucceeded(20 + map);
    }
    coordinator.flushBegins(2).forEach((executor, attempts) -> coordinator.flushed(2, attempts));
    coordinator.executorLost("a");
    assertFalse(coordinator.start(2, 0, 30, "b").all());
    assertTrue(coordinator.commit(2, 30, 10, 10, new long[] {5, 5, 5}, OTHER_VALUES).accepted());
    coordinator.taskSucceeded(30);
    assertNotNull(coordinator.locate(2, 0, 3, 60, 4, trackerEpoch));
    assertNotNull(coordinator.locate(2, 0, 3, 61, 4, trackerEpoch));
    assertTrue(coordinator.readingEnds(2, 60));
    coordinator.start(2, 1, 31, "b");
    assertFalse(coordinator.commit(2, 31, 10, 10, new long[] {5, 5, 5}, OTHER).accepted());
    assertTrue(done.contains("unregister 2 [30]"), done.toString());
    assertTrue(done.containsAll(List.of("fail stage 4", "by map 1 of shuffle 2")), done.toString());
    assertFalse(coordinator.readingEnds(2, 61));
    assertTrue(coordinator.start(2, 0, 32, "b").all(), "nothing is inherited from what was mixed");
    assertTrue(coordinator.commit(2, 32, 10, 10, new long[] {5, 5, 5}, FIRST).accepted());
    coordinator.start(2, 1, 33, "b");
    assertTrue(coordinator.commit(2, 33, 10, 10, new long[] {5, 5, 5}, OTHER).accepted());
  }

  /** A redo is compared with every attempt that partitions are still read from, not only with the last one. */
  @Test
  void aRedoIsComparedWithAllThatItInheritsFrom() {
    Digest.Column here = new Digest.Column(7, 8, 1, 1, 1);
    Digest.Column moved = new Digest.Column(7, 9, 1, 1, 1);
    Digest.Column other = new Digest.Column(5, 6, 9, 9, 9);
    coordinator.shuffleRemoved(1);
    executor("c");
    coordinator.shuffleAdded(2, 1, 3, () -> true);
    coordinator.start(2, 0, 20, "b");
    assertTrue(three(20, here));
    coordinator.flushBegins(2).forEach((executor, attempts) -> coordinator.flushed(2, attempts));
    coordinator.executorLost("a");
    assertFalse(coordinator.start(2, 0, 21, "b").all());
    assertTrue(three(21, other));
    coordinator.flushBegins(2).forEach((executor, attempts) -> coordinator.flushed(2, attempts));
    coordinator.executorLost("c");
    assertFalse(coordinator.start(2, 0, 22, "b").all());
    assertFalse(three(22, moved), "its records are where those of the second were, but not where those of the first were");
  }

  private boolean three(long attempt, Digest.Column column) {
    boolean accepted = coordinator.commit(2, attempt, 10, 10, new long[] {5, 5, 5},
        new Digest(10, 12, column.placed(), 0, false, List.of(column))).accepted();
    coordinator.taskSucceeded(attempt);
    return accepted;
  }

  @Test
  void hashesTellEveryBitThePartitionAndTheLength() {
    Set<Long> hashes = new HashSet<>();
    byte[] bytes = "a record of some twenty bytes, or a few more".getBytes(StandardCharsets.UTF_8);
    for (int to = 0; to <= bytes.length; to++) {
      for (int partition = 0; partition < 3; partition++) {
        assertTrue(hashes.add(Digest.hash(bytes, 0, to, Digest.start(partition))));
      }
    }
    for (int bit = 0; bit < 8 * bytes.length; bit++) {
      bytes[bit / 8] ^= (byte) (1 << bit % 8);
      for (int partition = 0; partition < 3; partition++) {
        assertTrue(hashes.add(Digest.hash(bytes, 0, bytes.length, Digest.start(partition))));
      }
      bytes[bit / 8] ^= (byte) (1 << bit % 8);
    }
    assertEquals(Digest.hash(bytes, 3, 30, 1), Digest.hash(new String(bytes, StandardCharsets.UTF_8).substring(3).getBytes(
        StandardCharsets.UTF_8), 0, 27, 1), "whatever its place");
    assertNotEquals(Digest.hash(new byte[8], 0, 8, 0), Digest.hash(new byte[16], 0, 16, 0));
  }

  /** The map's output is lost in part, and its next attempts draw other keys. */
  private void replaced() {
    coordinator.executorLost("a");
    coordinator.start(1, 0, 1, "b");
    assertFalse(commit(1, 1, OTHER));
    coordinator.start(1, 0, 2, "b");
    assertTrue(commit(1, 2, OTHER));
  }
}
