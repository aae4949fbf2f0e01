package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class ReplicateFaultsTest extends Faults {
  ReplicateFaultsTest() {
    super(Recovery.REPLICATE);
  }
}
