package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * After an executor was lost, adaptive execution read half or twice the size of a partition, and planned other joins
 * and numbers of partitions than without a loss.
 */
class ReportedSizesTest {
  private static final int MAPS = 30;
  private static final int PARTITIONS = 10;
  private static final Digest SAME = new Digest(10, 12, 34, 0, false, List.of());

  /** A map status that Spark has: the attempt that it is of, its location and its sizes. */
  private record Registered(long attempt, String location, long[] sizes) {}

  /** Spark's table of map outputs, and its executors. */
  private final Map<Integer, Registered> statuses = new TreeMap<>();
  private final RecordingDriver driver = new RecordingDriver() {
    @Override
    public boolean unregister(int shuffle, Set<Long> attempts) {
      return statuses.values().removeIf(s -> attempts.contains(s.attempt));
    }
  };
  private final List<String> executors = new ArrayList<>();
  private final Map<Long, Emission> written = new HashMap<>();
  private long[][] truth;
  private Coordinator coordinator;
  private long attempts;
  private int executorsEver;

  @ParameterizedTest
  @EnumSource(Recovery.class)
  void sizesAddUpToThoseOfARunWithoutALossWhateverIsLostWhen(Recovery recovery) {
    for (int seed = 0; seed < 200; seed++) {
      run(recovery, seed, 1);
    }
  }

  /** A repetition runs the inherited sizes through the size code again. */
  @Test
  void errorsOfTheSizeCodeDoNotAddUpOverManyLosses() {
    for (int seed = 0; seed < 20; seed++) {
      run(Recovery.RECOMPUTE, seed, 12);
    }
  }

  private void run(Recovery recovery, int seed, int rounds) {
    Random random = new Random(seed);
    truth = new long[MAPS][PARTITIONS];
    for (int m = 0; m < MAPS; m++) {
      for (int p = 0; p < PARTITIONS; p++) {
        truth[m][p] = random.nextInt(3) == 0 || p == 3 ? 0 : (long) (100_000 * (1 + random.nextDouble()) / (p + 1));
      }
    }
    statuses.clear();
    executors.clear();
    written.clear();
    attempts = 0;
    coordinator = new Coordinator(driver, driver, 0.2, recovery, false);
    for (int e = 0; e < 3; e++) {
      addExecutor();
    }
    coordinator.shuffleAdded(1, MAPS, PARTITIONS, () -> true);
    for (int round = 0; round < rounds; round++) {
      if (round > 0) {
        lose(random);
      }
      writeAll(random, recovery + ", seed " + seed + ", round " + round);
      check(recovery + ", seed " + seed + ", round " + round);
    }
    lose(random);
    writeAll(random, recovery + ", seed " + seed);
    check(recovery + ", seed " + seed + ", a loss at the end");
  }

  private void addExecutor() {
    String id = "e" + executorsEver++;
    executors.add(id);
    coordinator.executorAdded(new Executor(id, "host", 1));
  }

  /** Spark drops the map statuses with that location, too. */
  private void lose(Random random) {
    String lost = executors.remove(random.nextInt(executors.size()));
    coordinator.executorLost(lost);
    statuses.values().removeIf(s -> s.location.equals(lost));
    addExecutor();
  }

  private void writeAll(Random random, String of) {
    for (int steps = 0; statuses.size() < MAPS; steps++) {
      assertTrue(steps < 100 * MAPS, of + ": maps run again and again");
      int map = random.nextInt(MAPS);
      if (statuses.containsKey(map)) {
        continue;
      }
      long first = start(map, random);
      long second = random.nextInt(5) == 0 ? start(map, random) : -1; // speculation
      if (random.nextInt(25) == 0) {
        lose(random);
      }
      Registered a = commit(map, first);
      Registered b = second < 0 ? null : commit(map, second);
      Registered winner = a == null || b != null && random.nextBoolean() ? b : a;
      if (winner != null && random.nextInt(8) != 0) { // else the task fails after its commit
        coordinator.taskSucceeded(winner.attempt);
        statuses.put(map, winner);
      }
      if (random.nextInt(4) == 0) {
        coordinator.flushBegins(1).values().forEach(covered -> coordinator.flushed(1, covered));
      }
      if (random.nextInt(20) == 0 && !statuses.isEmpty()) {
        int broken = List.copyOf(statuses.keySet()).get(random.nextInt(statuses.size()));
        coordinator.missing(1, random.nextInt(PARTITIONS), Map.of(broken, statuses.get(broken).attempt), null, "a flipped byte");
      }
    }
  }

  private long start(int map, Random random) {
    long attempt = attempts++;
    written.put(attempt, coordinator.start(1, map, attempt, executors.get(random.nextInt(executors.size()))));
    return attempt;
  }

  private Registered commit(int map, long attempt) {
    long[] sizes = new long[PARTITIONS];
    for (int p = 0; p < PARTITIONS; p++) {
      sizes[p] = written.get(attempt).includes(p) ? truth[map][p] : 0;
    }
    Coordinator.CommitResult result = coordinator.commit(1, attempt, 10, 10, sizes, SAME);
    return result.accepted() ? new Registered(attempt, result.location().id(), result.sizes()) : null;
  }

  private void check(String of) {
    Lineage lineage = coordinator.locate(1, 0, PARTITIONS, 1_000_000, 0, 0).lineage();
    for (int p = 0; p < PARTITIONS; p++) {
      long reported = 0;
      long wanted = 0;
      Set<Long> writers = new HashSet<>();
      for (int m = 0; m < MAPS; m++) {
        Registered status = statuses.get(m);
        String where = of + ", map " + m + ", partition " + p;
        wanted += truth[m][p];
        reported += status.sizes[p];
        long writer = status.sizes[p] == 0 ? Emission.NOBODY : lineage.writer(status.attempt, p);
        assertEquals(truth[m][p] == 0, writer == Emission.NOBODY, where + ": what a reader looks for");
        assertTrue(writer == Emission.NOBODY || written.get(writer).includes(p) && writers.add(writer), where + " from " + writer);
      }
      assertEquals(wanted, reported, 0.15 * wanted, of + ", partition " + p);
    }
  }
}
