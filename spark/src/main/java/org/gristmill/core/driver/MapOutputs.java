package org.gristmill.core.driver;

import java.util.List;
import java.util.Set;
import org.gristmill.core.plan.Executor;

/** The changes that the coordinator makes in Spark's table of map outputs. Calls must not block. */
public interface MapOutputs {
  /** Unregisters the map outputs of these attempts. True if any of them was registered. */
  boolean unregister(int shuffle, Set<Long> attempts);

  /** Unregisters the map output of an attempt in any shuffle, also in one that the plugin does not handle. */
  boolean unregisterAnywhere(long attempt);

  /** The epoch of Spark's map output tracker. It increases when map outputs are unregistered. */
  long trackerEpoch();

  /**
   * Names other executors as the places of the map outputs that are registered at {@code from}, in turn.
   *
   * @param to the executors, those that shall get more of them more than once; not empty
   */
  void move(int shuffle, String from, List<Executor> to);

  /** These executors keep data of the shuffle: dynamic allocation must not remove them for being idle. */
  void keep(int shuffle, List<Executor> homes);

  /** Ends the jobs that need this stage, as if a task of it had failed for the last time. */
  void fail(int stage, String reason);
}
