package org.gristmill.spark.node;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;

/**
 * Executors that parcels do not reach. The log names each once, until one reaches it again; every parcel is at DEBUG.
 */
final class UnreachableExecutors {
  private final Logger log;
  private final Set<String> unreachable = ConcurrentHashMap.newKeySet();

  UnreachableExecutors(Logger log) {
    this.log = log;
  }

  void failed(String executor, int shuffle, Throwable error) {
    if (unreachable.add(executor)) {
      log.warn("Executor {} cannot be sent to: {}. What it should get is sent again, to another executor if the driver says that this one"
          + " is lost", executor, String.valueOf(error));
    }
    log.debug("A parcel of shuffle {} was not sent to executor {}", shuffle, executor, error);
  }

  void reached(String executor) {
    unreachable.remove(executor);
  }
}
