package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class ResendFaultsTest extends Faults {
  ResendFaultsTest() {
    super(Recovery.RESEND);
  }
}
