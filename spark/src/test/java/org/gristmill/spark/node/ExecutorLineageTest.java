package org.gristmill.spark.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Settings;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Every reduce task was sent the lineage of its shuffle, though the task before it on the same executor had got the
 * same.
 */
class ExecutorLineageTest {
  private static final Executor HERE = new Executor("1", "host", 1);
  private final List<Long> asked = new ArrayList<>(); // the versions that the executor said it had
  private Lineage newest = lineage(7);
  private ExecutorNode node;

  private static Lineage lineage(long version) {
    return new Lineage(version, Map.of(version, new Emission(false, new BitSet(), 3)));
  }

  /** A driver that leaves out what the executor has. */
  @BeforeEach
  void start() {
    SparkExecutor spark = mock(SparkExecutor.class);
    when(spark.executor()).thenReturn(HERE);
    when(spark.disks()).thenReturn(1);
    when(spark.sharedMemoryBytes()).thenReturn(64L << 20);
    when(spark.ask(any(), anyLong())).thenAnswer(call -> {
      Message.Locate locate = call.getArgument(0);
      asked.add(locate.lineage());
      return new Message.Located(new Location(1, List.of(HERE), locate.lineage() == newest.version() ? null : newest));
    });
    node = ExecutorNode.started(spark, new Settings(entry -> null), 10_000);
  }

  @AfterEach
  void stop() {
    node.close();
  }

  private Lineage located(int shuffle) {
    return node.locate(new Message.Locate(shuffle, 0, 1, 50, 2, 0)).lineage();
  }

  @Test
  void aLineageIsSentOnceUntilThereIsANewerOneOrTheShuffleIsRemoved() {
    assertEquals(newest, located(1));
    assertEquals(newest, located(1));
    newest = lineage(8);
    assertEquals(newest, located(1));
    assertEquals(newest, located(2), "of another shuffle nothing is known");
    node.remove(1);
    assertEquals(newest, located(1));
    assertEquals(List.of(0L, 7L, 7L, 0L, 0L), asked);
  }
}
