package org.apache.spark.shuffle.gristmill;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.BaseShuffleHandle;

/** Marks a shuffle as ours; shuffles that fell back carry the sort shuffle's own handle. */
final class GristmillShuffleHandle<K, V, C> extends BaseShuffleHandle<K, V, C> {
  private static final long serialVersionUID = 1L;
  private final boolean relocatable;

  /**
   * @param relocatable whether serialised records may be moved; found out once, because Kryo makes a whole new Kryo to
   *     say so
   */
  GristmillShuffleHandle(int shuffleId, ShuffleDependency<K, V, C> dependency, boolean relocatable) {
    super(shuffleId, dependency);
    this.relocatable = relocatable;
  }

  boolean relocatable() {
    return relocatable;
  }
}
