package org.apache.spark.shuffle.gristmill;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.StageInfo;

/**
 * Tells the driver's endpoint of executors that Spark has given up, whether or not their connection has broken, and of stages whose
 * results are there.
 */
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
  public void onStageCompleted(SparkListenerStageCompleted completed) {
    StageInfo stage = completed.stageInfo();
    if (stage.shuffleDepId().isEmpty() && stage.failureReason().isEmpty()) {
      driver.stageDelivered(stage.stageId());
    }
  }

  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd end) {
    driver.applicationEnds();
  }
}
