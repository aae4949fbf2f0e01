package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class RecomputeFaultsTest extends HomeFaults {
  RecomputeFaultsTest() {
    super(Recovery.RECOMPUTE);
  }
}
