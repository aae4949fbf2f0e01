package org.apache.spark.shuffle.gristmill;

import java.util.Properties;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.scheduler.Task;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.shuffle.ShuffleManager;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.Tuple2;
import scala.concurrent.Future;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/** How Spark before 4.3 has a shuffle manager that stores blocks, and how a block is uploaded there. */
interface SparkTransfer extends ShuffleManager {
  // The versions 4.x of Spark that this file is for, see SparkFit.
  int MINOR_MIN = 0;
  int MINOR_MAX = 2;

  StorageLevel DISK = StorageLevel.DISK_ONLY();
  ClassTag<byte[]> BYTES = ClassTag$.MODULE$.apply(byte[].class); // of the kind of tag that Spark registers with Kryo

  /** The message that Spark serialises with an upload. */
  static Object uploadMessage() {
    return new Tuple2<>(DISK, BYTES);
  }

  static Future<BoxedUnit> upload(BlockTransferService service, String host, int port, String executor, BlockId block, ManagedBuffer data) {
    return service.uploadBlock(host, port, executor, block, data, DISK, BYTES);
  }

  /** No task of a stage, which is enough to name it to Spark's scheduler. */
  static TaskSet tasksOf(int stage) {
    return new TaskSet(new Task<?>[0], stage, 0, 0, new Properties(), 0, Option.empty());
  }
}
