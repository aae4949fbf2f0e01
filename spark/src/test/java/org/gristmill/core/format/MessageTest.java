package org.gristmill.core.format;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.junit.jupiter.api.Test;

class MessageTest {
  private static final Executor A = new Executor("1", "host", 7337);
  private static final Executor B = new Executor("2", "::1", 1);

  @Test
  void everyMessageIsReadBack() {
    BitSet some = new BitSet();
    some.set(3);
    some.set(300);
    Emission partial = new Emission(false, some, 9);
    for (Message m : List.of(new Message.Register("1", "host", 7337), new Message.Start(1, 2, 1L << 40, "1"),
        new Message.Begin(partial), new Message.Begin(Emission.ALL), new Message.PlanRequest(4), new Message.Locate(1, 2, 3, 1L << 40, 5, 6),
        new Message.Locate(1, 2, 3, 1L << 40, 5, 6, 1L << 33),
        new Message.Planned(new PlanUpdate(new Plan(3, 2, new String[] {"1", "2", "1"}), List.of(A, B), some, "")),
        new Message.Planned(new PlanUpdate(new Plan(3, 2, new String[] {"1", "2"}, new String[] {"2", ""}), List.of(A, B),
            new BitSet(), "")),
        new Message.Planned(new PlanUpdate(new Plan(3, 0, new String[0]), List.of(), new BitSet(), "")),
        new Message.Flush(5), new Message.Done(false),
        new Message.Located(new Location(2, List.of(A, B, A), new Lineage(1L << 33, Map.of(10L, partial, 5L, partial, 1L << 40,
            new Emission(false, new BitSet(), Emission.NOBODY))))),
        new Message.Located(new Location(2, List.of(A, B, A), Lineage.NONE)), new Message.Located(new Location(2, List.of(A), null)),
        new Message.Missing(1, 2, Map.of(200, 5L), "1", "why"), new Message.Corrupt(1, 2, 200, Map.of(200, 5L), "1", "why"),
        new Message.StoreFailed(1, "1", "disk full"),
        new Message.Planned(new PlanUpdate(new Plan(3, 2, new String[] {"1"}), List.of(A), some, "2")),
        new Message.ReadingEnds(1, 1L << 40), new Message.Leaving("1"), new Message.Refused("2"))) {
      assertEquals(m, Message.decode(Message.encode(m)));
    }
  }

  @Test
  void sizesOfEveryMagnitudeAreReadBack() {
    long[] sizes = {0, 1, 127, 128, 300, 1L << 31, Long.MAX_VALUE};
    Digest digest = new Digest(5, -6, 7, -8, true, List.of(new Digest.Column(1, -2, 0.5, -0.25, 3), new Digest.Column(-1, 2, 5, 6, 7)));
    Message.Commit commit = (Message.Commit) Message.decode(Message.encode(new Message.Commit(1, 2, 3, 4, sizes, digest)));
    assertArrayEquals(sizes, commit.sizes());
    assertEquals(digest, commit.digest());
    Message.Committed shaped = (Message.Committed) Message.decode(Message.encode(new Message.Committed(true, "1", "h", 5, sizes, -8)));
    assertArrayEquals(sizes, shaped.sizes());
    assertEquals(List.of("1", "h", 5), List.of(shaped.executor(), shaped.host(), shaped.port()));
    assertEquals(-8, shaped.rows());
  }

  @Test
  void aMessageThatIsCutOffOrUnknownIsAnError() {
    byte[] whole = Message.encode(new Message.Start(1, 2, 3, "executor"));
    for (int length = 0; length < whole.length; length++) {
      byte[] cut = Arrays.copyOf(whole, length);
      assertThrows(UncheckedIOException.class, () -> Message.decode(cut));
    }
    assertThrows(UncheckedIOException.class, () -> Message.decode(new byte[] {99}));
  }
}
