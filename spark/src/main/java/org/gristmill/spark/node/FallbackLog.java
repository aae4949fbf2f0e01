package org.gristmill.spark.node;

import org.slf4j.Logger;

/**
 * Says in the driver's log whether the plugin is at work: one INFO line when the first shuffle is ours; one WARN line
 * when none is, as soon as that is sure, which for reasons that lie in single shuffles is the end of the application.
 */
public final class FallbackLog {
  private final Logger log;
  private int ours;
  private int others;
  private String last;
  private boolean warned;

  public FallbackLog(Logger log) {
    this.log = log;
  }

  public synchronized void ours(int shuffle) {
    if (ours++ == 0) {
      log.info("Gristmill is active: shuffle {} is its first in this application", shuffle);
    }
  }

  public synchronized void fellBack(int shuffle, FallbackReason.Found reason) {
    others++;
    last = reason.sentence();
    log.info("Shuffle {} uses the sort shuffle: {}", shuffle, last);
    if (reason.always() && !warned) {
      warned = true;
      log.warn("Gristmill is not active, every shuffle of this application uses Spark's sort shuffle: {}", last);
    }
  }

  public synchronized void applicationEnds() {
    if (others > 0 && ours == 0 && !warned) {
      log.warn("Gristmill was not active, every shuffle of this application ({}) used Spark's sort shuffle; of the last one: {}", others,
          last);
    }
  }
}
