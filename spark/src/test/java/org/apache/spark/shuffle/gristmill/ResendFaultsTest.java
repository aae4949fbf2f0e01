package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.plan.Recovery;

class ResendFaultsTest extends RedoFaults {
  ResendFaultsTest() {
    super(Recovery.RESEND);
  }
}
