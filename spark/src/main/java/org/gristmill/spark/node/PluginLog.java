package org.gristmill.spark.node;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The plugin's one logger, under the name of the class that a user has set. */
public final class PluginLog {
  public static final Logger LOG = LoggerFactory.getLogger("org.apache.spark.shuffle.gristmill.GristmillShuffleManager");

  private PluginLog() {}
}
