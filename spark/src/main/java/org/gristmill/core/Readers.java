package org.gristmill.core;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The task attempts that have read a shuffle. A task says when it begins to read, and asks when it ends whether what it has read still
 * stands: only then does it count. So it is known here, when a map's output is replaced, whose results were made from the old one.
 */
final class Readers {
  /** A task attempt of a stage; {@code ended} if its result may count already. */
  record Reader(long attempt, int stage, boolean ended) {}

  private final Map<Long, Reader> readers = new HashMap<>();
  private final Set<Long> misled = new HashSet<>(); // have read what was replaced

  /** False if it has already read what was replaced. */
  boolean begins(long attempt, int stage) {
    readers.putIfAbsent(attempt, new Reader(attempt, stage, false));
    return !misled.contains(attempt);
  }

  /** False if what it has read was replaced meanwhile: it must not succeed. */
  boolean ends(long attempt) {
    Reader reader = readers.computeIfPresent(attempt, (id, r) -> new Reader(id, r.stage, true));
    return reader != null && !misled.contains(attempt);
  }

  /** What was read is replaced: none of these may end well any more. Those that have ended already are for the caller to undo. */
  List<Reader> replaced() {
    List<Reader> all = new ArrayList<>(readers.values());
    misled.addAll(readers.keySet());
    readers.clear();
    return all;
  }

  /** The results of a stage have been delivered. */
  void delivered(int stage) {
    readers.values().removeIf(r -> r.stage == stage && r.ended);
  }
}
