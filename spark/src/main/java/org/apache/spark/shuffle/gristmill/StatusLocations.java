package org.apache.spark.shuffle.gristmill;

import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.BlockManagerId$;
import scala.Option;

/**
 * Map statuses name an executor, but of it Spark's scheduler takes only the host as the place where a reduce task would
 * like to run. Its own notation for a task location lets a host name mean one executor ("executor_host_id"), so that is
 * what we put.
 */
record StatusLocations(boolean byExecutor) {
  BlockManagerId of(String executor, String host, int port) {
    boolean plain = !byExecutor || executor.equals("driver") || host.indexOf(':') >= 0;
    return BlockManagerId$.MODULE$.apply(executor, plain ? host : "executor_" + host + "_" + executor, port, Option.empty());
  }
}
