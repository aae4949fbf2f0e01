package org.apache.spark.shuffle.gristmill;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.gristmill.spark.node.DriverNode;

/**
 * Tells the driver's node of executors that Spark has given up, whether or not their connection is broken, of tasks
 * that have succeeded, and of stages whose results have been delivered.
 */
final class ExecutorListener extends SparkListener {
  private final DriverNode driver;

  ExecutorListener(DriverNode driver) {
    this.driver = driver;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    driver.executorLost(removed.executorId());
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    if (end.taskInfo().successful()) {
      driver.coordinator().taskSucceeded(end.taskInfo().taskId());
    }
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted completed) {
    StageInfo stage = completed.stageInfo();
    if (stage.shuffleDepId().isEmpty() && stage.failureReason().isEmpty()) {
      driver.coordinator().stageDelivered(stage.stageId());
    }
  }

  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd end) {
    driver.applicationEnds();
  }
}
