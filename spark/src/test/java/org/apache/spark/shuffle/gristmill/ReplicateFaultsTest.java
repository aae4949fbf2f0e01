package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.plan.Recovery;

class ReplicateFaultsTest extends RedoFaults {
  ReplicateFaultsTest() {
    super(Recovery.REPLICATE);
  }
}
