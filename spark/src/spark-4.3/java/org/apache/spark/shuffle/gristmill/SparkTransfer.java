package org.apache.spark.shuffle.gristmill;

import java.util.Properties;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.netty.BlockReplicationMetadata;
import org.apache.spark.scheduler.Task;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.shuffle.BlockingShuffleManager;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.concurrent.Future;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/** How Spark from 4.3 on has a shuffle manager that stores blocks, and how a block is uploaded there. */
interface SparkTransfer extends BlockingShuffleManager {
  // The versions 4.x of Spark that this file is for, see SparkFit.
  int MINOR_MIN = 3;
  int MINOR_MAX = 3;

  StorageLevel DISK = StorageLevel.DISK_ONLY();
  ClassTag<byte[]> BYTES = ClassTag$.MODULE$.apply(byte[].class); // of the kind of tag that Spark registers with Kryo

  /** The message that Spark serialises with an upload. */
  static Object uploadMessage() {
    return new BlockReplicationMetadata(DISK, BYTES, Option.empty(), false);
  }

  static Future<BoxedUnit> upload(BlockTransferService service, String host, int port, String executor, BlockId block, ManagedBuffer data) {
    return service.uploadBlock(host, port, executor, block, data, DISK, BYTES, Option.empty(), false);
  }

  /** No task of a stage, which is enough to name it to Spark's scheduler. */
  static TaskSet tasksOf(int stage) {
    return new TaskSet(new Task<?>[0], stage, 0, 0, new Properties(), 0, Option.empty(), false);
  }
}
