package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class RecomputeFaultsTest extends RedoFaults {
  RecomputeFaultsTest() {
    super(Recovery.RECOMPUTE);
  }
}
