package org.gristmill.core.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** After a loss, every reduce task of a shuffle of 2,000 maps and 2,000 partitions was sent half a megabyte. */
class LineageTest {
  private static final int MAPS = 2000;
  private static final int PARTITIONS = 2000;
  private static final Digest SAME = new Digest(10, 12, 34, 0, false, List.of());
  private final RecordingDriver driver = new RecordingDriver();
  private final Coordinator coordinator = new Coordinator(driver, driver, 0.2, Recovery.RECOMPUTE, false);
  private long attempts;

  @BeforeEach
  void executorsAreThere() {
    for (int e = 0; e < 4; e++) {
      coordinator.executorAdded(new Executor("e" + e, "host", 1));
    }
    coordinator.shuffleAdded(1, MAPS, PARTITIONS, () -> true);
  }

  private void writeAll() {
    for (int m = 0; m < MAPS; m++) {
      long attempt = attempts++;
      coordinator.start(1, m, attempt, "e1");
      coordinator.commit(1, attempt, 10, 10, new long[PARTITIONS], SAME);
      coordinator.taskSucceeded(attempt);
    }
  }

  private Location located() {
    return coordinator.locate(1, 7, 8, 1_000_000 + attempts++, 2, 0);
  }

  @Test
  void aReaderIsSentTheLineageInAFewBytesOfEachMap() {
    writeAll();
    int before = Message.encode(new Message.Located(located())).length;
    coordinator.flushBegins(1).values().forEach(a -> coordinator.flushed(1, a));
    coordinator.executorLost("e2");
    writeAll();
    int after = Message.encode(new Message.Located(located())).length;
    int known = Message.encode(new Message.Located(located().with(null))).length;
    System.out.println("Located: " + before + " bytes, after a loss " + after + ", to an executor that has the lineage " + known);
    assertTrue(after - before < 10 * MAPS, after + " bytes");
    assertEquals(before, known + 3, "version and counts of no lineage at all");
  }

  @Test
  void theLineageHasANewVersionWheneverItGrowsAndOnlyThen() {
    writeAll();
    assertSame(Lineage.NONE, located().lineage());
    coordinator.executorLost("e2");
    coordinator.start(1, 0, attempts++, "e0");
    Lineage first = located().lineage();
    assertSame(first, located().lineage());
    coordinator.start(1, 1, attempts++, "e0");
    assertTrue(located().lineage().version() > first.version());
  }

  /** An executor may hear of the removal later than of the new output. */
  @Test
  void aShuffleThatIsWrittenAgainHasOtherVersions() {
    writeAll();
    coordinator.executorLost("e2");
    writeAll();
    Lineage first = located().lineage();
    coordinator.shuffleRemoved(1);
    writeAll();
    assertSame(Lineage.NONE, located().lineage());
    coordinator.executorLost("e3");
    writeAll();
    assertTrue(first.version() != 0);
    assertNotEquals(first.version(), located().lineage().version());
  }
}
