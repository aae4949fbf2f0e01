package org.apache.spark.shuffle.gristmill;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.BaseShuffleHandle;

/** Marks a shuffle as ours; shuffles that fell back carry the sort shuffle's own handle. */
final class GristmillShuffleHandle<K, V, C> extends BaseShuffleHandle<K, V, C> {
  private static final long serialVersionUID = 1L;

  GristmillShuffleHandle(int shuffleId, ShuffleDependency<K, V, C> dependency) {
    super(shuffleId, dependency);
  }
}
