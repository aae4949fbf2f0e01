package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.api.java.JavaPairRDD;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;

/**
 * Faults after which every home is still there: how homes are recovered makes no difference, so they are tried once.
 */
class AttemptFaultsTest extends Faults {
  AttemptFaultsTest() {
    super(Recovery.RECOMPUTE);
  }

  /** Stopped for a while, as a long garbage collection would: it neither sends, receives nor answers. */
  @Test
  void anExecutorThatStallsDoesNotChangeTheAnswer() throws Exception {
    everySeed(1500, new Behaviour(0, 0, 0), random -> {
      List<ProcessHandle> executors = TestCluster.executors();
      String pid = String.valueOf(executors.get(random.nextInt(executors.size())).pid());
      assertEquals(0, new ProcessBuilder("kill", "-STOP", pid).start().waitFor());
      Thread.sleep(500 + random.nextInt(1500));
      assertEquals(0, new ProcessBuilder("kill", "-CONT", pid).start().waitFor());
    });
  }

  @Test
  void failingAndSlowAttemptsDoNotChangeTheAnswer() throws Exception {
    everySeed(0, new Behaviour(0, 2, 0), random -> {});
    everySeed(0, new Behaviour(0, 0, 1500), random -> {});
  }

  @Test
  void aFlippedByteIsNoticedAndTheMapRunsAgain() throws Exception {
    for (int seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      Random random = new Random(seed);
      JavaPairRDD<Integer, Long> sums = sums(new Behaviour(seed, 0, 0), 0);
      flip(oneOf(filesMadeBy(sums), random), random);
      assertEquals(expected(), new TreeMap<>(sums.collectAsMap()), "seed " + seed);
    }
  }

  private static void flip(Path file, Random random) throws IOException {
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      long at = (long) (random.nextDouble() * bytes.length());
      bytes.seek(at);
      int b = bytes.read();
      bytes.seek(at);
      bytes.write(b ^ 1 << random.nextInt(8));
    }
  }
}
