package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class RecomputeFaultsTest extends Faults {
  RecomputeFaultsTest() {
    super(Recovery.RECOMPUTE);
  }
}
