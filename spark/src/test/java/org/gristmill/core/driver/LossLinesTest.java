package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gristmill.core.format.Digest;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * After an executor was lost, the driver's log had a line for each shuffle that the session had ever run, and one for
 * each partition and reduce task that had missed something.
 */
class LossLinesTest {
  private static final int OLD = 20;
  private static final int MAPS = 200;
  private static final int PARTITIONS = 50;
  private final RecordingDriver driver = new RecordingDriver();
  private final Coordinator coordinator = new Coordinator(driver, driver, 0.5, Recovery.RECOMPUTE, false);
  private boolean collected;

  /** Shuffles 0 to 19 are over, the program has let go of every second one; 20 has 200 maps. */
  @BeforeEach
  void shufflesAreWritten() {
    List.of("a", "b", "c").forEach(id -> coordinator.executorAdded(new Executor(id, "host", 1)));
    for (int shuffle = 0; shuffle <= OLD; shuffle++) {
      boolean dead = shuffle % 2 == 0 && shuffle < OLD;
      coordinator.shuffleAdded(shuffle, maps(shuffle), PARTITIONS, new Dependency() {
        @Override
        public boolean isDeterminate() {
          return true;
        }

        @Override
        public boolean isCollected() {
          return dead && collected;
        }
      });
      for (int m = 0; m < maps(shuffle); m++) {
        write(shuffle, m, shuffle * 1000L + m);
      }
      flush(shuffle);
    }
    driver.lines.clear();
    collected = true;
  }

  private static int maps(int shuffle) {
    return shuffle < OLD ? 4 : MAPS;
  }

  private void write(int shuffle, int map, long attempt) {
    coordinator.start(shuffle, map, attempt, "abc".substring(map % 3, map % 3 + 1));
    assertTrue(coordinator.commit(shuffle, attempt, 10, 10, new long[PARTITIONS], Digest.EMPTY).accepted());
    coordinator.taskSucceeded(attempt);
  }

  private void flush(int shuffle) {
    coordinator.flushBegins(shuffle).values().forEach(attempts -> coordinator.flushed(shuffle, attempts));
  }

  @Test
  void anExecutorsLossIsOneLineOfEachShuffleThatIsUsedAgain() {
    coordinator.executorLost("b");
    assertEquals(List.of(), driver.lines, "nobody misses anything yet");
    for (int m = 0; m < MAPS; m++) {
      write(OLD, m, 100_000 + m);
    }
    coordinator.locate(OLD, 0, PARTITIONS, 200_000, 3, 0);
    assertEquals(1, driver.lines.size(), driver.lines.toString());
    String line = driver.lines.get(0);
    assertTrue(line.contains("shuffle 20: executor b was lost") && line.contains("200 maps run again"), line);
  }

  @Test
  void shufflesThatNoJobCanRunAreNotInTheLog() {
    coordinator.executorLost("b");
    for (int shuffle = 0; shuffle < OLD; shuffle++) {
      coordinator.start(shuffle, 0, 100_000 + shuffle, "a");
    }
    assertEquals(OLD / 2, driver.lines.size(), driver.lines.toString());
  }

  @Test
  void aShuffleThatLostNothingSaysNothing() {
    coordinator.shuffleAdded(99, 4, 4, () -> true);
    coordinator.placed(99); // has a plan, and no map of it has begun
    driver.lines.clear();
    coordinator.executorLost("b");
    coordinator.start(99, 0, 100_000, "a");
    assertEquals(List.of(), driver.lines);
  }

  /** Every reduce task of the stage reports all maps of its partition. */
  @Test
  void whatReadersMissAtAHomeIsOneLine() {
    Map<Integer, Long> winners = new HashMap<>();
    for (int m = 0; m < MAPS; m++) {
      winners.put(m, OLD * 1000L + m);
    }
    String[] homes = driver.plans.get(driver.plans.size() - 1).homes();
    List<Integer> atB = new ArrayList<>();
    for (int p = 0; p < PARTITIONS; p++) {
      if (homes[p].equals("b")) {
        atB.add(p);
        coordinator.missing(OLD, p, winners, null, "executor b does not have all segments of 200 maps");
      }
    }
    assertEquals(List.of(), driver.lines);
    assertTrue(atB.size() > 10 && driver.details.size() >= atB.size(), "each is at DEBUG");
    coordinator.start(OLD, 0, 100_000, "a");
    coordinator.missing(OLD, atB.get(0), winners, null, "a late report of what is known");
    coordinator.start(OLD, 1, 100_001, "a");
    assertEquals(1, driver.lines.size(), driver.lines.toString());
    assertTrue(driver.lines.get(0).contains(atB.size() + " partitions"), driver.lines.get(0));
  }

  @Test
  void lossesOfSeveralExecutorsAreOneLine() {
    coordinator.executorLost("b");
    coordinator.executorLost("c");
    coordinator.start(OLD, 0, 100_000, "a");
    assertEquals(1, driver.lines.size());
    assertTrue(driver.lines.get(0).contains("executor b was lost; executor c was lost"), driver.lines.get(0));
  }

  /** With random keys, every map that runs again differs. */
  @Test
  void mapsThatWriteSomethingElseAreOneLineForEachShuffle() {
    coordinator.executorLost("b");
    for (int m = 0; m < MAPS; m++) {
      coordinator.start(OLD, m, 100_000 + m, "a");
      coordinator.commit(OLD, 100_000 + m, 10, 10, new long[PARTITIONS], new Digest(1, m, m, 0, false, List.of()));
    }
    assertEquals(2, driver.lines.size(), String.join("\n", driver.lines));
    assertTrue(driver.lines.get(1).contains("replaced"), driver.lines.get(1));
  }
}
