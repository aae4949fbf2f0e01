package org.gristmill.core.driver;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The task attempts that have read a shuffle. A task reports when it begins to read. When it ends, it asks whether its
 * input is still valid; if not, it fails. So the driver knows which results were made from an output that is replaced
 * later.
 */
final class ReaderTasks {
  /** A task attempt of a stage; {@code ended} if its result may count already. */
  record Reader(long attempt, int stage, boolean ended) {}

  private final Map<Long, Reader> readers = new HashMap<>();
  private final Set<Long> stale = new HashSet<>(); // have read outputs that were replaced

  /** False if it has already read an output that was replaced. */
  boolean begins(long attempt, int stage) {
    readers.putIfAbsent(attempt, new Reader(attempt, stage, false));
    return !stale.contains(attempt);
  }

  /** False if an output that it has read was replaced meanwhile: the task must fail. */
  boolean ends(long attempt) {
    Reader reader = readers.computeIfPresent(attempt, (id, r) -> new Reader(id, r.stage, true));
    return reader != null && !stale.contains(attempt);
  }

  /**
   * An output was replaced: tasks that have read it must fail. Returns all of them; the caller undoes those that have
   * ended already.
   */
  List<Reader> replaced() {
    List<Reader> all = new ArrayList<>(readers.values());
    stale.addAll(readers.keySet());
    readers.clear();
    return all;
  }

  /** The results of a stage have been delivered. */
  void delivered(int stage) {
    readers.values().removeIf(r -> r.stage == stage && r.ended);
  }
}
