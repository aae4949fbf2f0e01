package org.apache.spark.shuffle.gristmill;

import org.gristmill.core.Recovery;

class ResendFaultsTest extends HomeFaults {
  ResendFaultsTest() {
    super(Recovery.RESEND);
  }
}
