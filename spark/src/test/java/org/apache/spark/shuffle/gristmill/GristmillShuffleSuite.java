package org.apache.spark.shuffle.gristmill;

import org.apache.spark.ShuffleSuite;

/** Spark's own shuffle tests, run with our manager. */
public final class GristmillShuffleSuite extends ShuffleSuite {
  public GristmillShuffleSuite() {
    conf().set("spark.shuffle.manager", GristmillShuffleManager.class.getName());
    conf().set("spark.gristmill.fallback", "false");

    conf().set("spark.gristmill.store.bytes", "0"); // one of them looks for any file of a small shuffle
  }
}
