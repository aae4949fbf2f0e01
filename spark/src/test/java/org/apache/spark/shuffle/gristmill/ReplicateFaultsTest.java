package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class ReplicateFaultsTest extends HomeFaults {
  ReplicateFaultsTest() {
    super(Recovery.REPLICATE);
  }
}
