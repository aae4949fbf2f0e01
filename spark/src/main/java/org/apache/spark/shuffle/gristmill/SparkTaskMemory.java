package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.gristmill.spark.node.TaskMemory;

/** A task's memory from Spark's memory manager, which may ask for it back. */
final class SparkTaskMemory extends MemoryConsumer implements TaskMemory {
  private final Spill spill;
  private final Thread owner = Thread.currentThread();

  private SparkTaskMemory(TaskContext context, Spill spill) {
    super(context.taskMemoryManager(), MemoryMode.ON_HEAP);
    this.spill = spill;
  }

  static Lender of(TaskContext context) {
    return spill -> new SparkTaskMemory(context, spill);
  }

  @Override
  public long acquire(long bytes) {
    return acquireMemory(bytes);
  }

  @Override
  public void free(long bytes) {
    freeMemory(bytes);
  }

  @Override
  public long used() {
    return getUsed();
  }

  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    return trigger == this || Thread.currentThread() != owner ? 0 : spill.spill();
  }
}
