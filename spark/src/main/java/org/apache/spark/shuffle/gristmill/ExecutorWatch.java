package org.apache.spark.shuffle.gristmill;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/** Tells the driver's endpoint of executors that Spark has given up, whether or not their connection has broken. */
final class ExecutorWatch extends SparkListener {
  private final DriverEndpoint driver;

  ExecutorWatch(DriverEndpoint driver) {
    this.driver = driver;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    driver.executorLost(removed.executorId());
  }

  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd end) {
    driver.applicationEnds();
  }
}
