package org.apache.spark.shuffle.gristmill;

import org.apache.spark.memory.MemoryManager;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.storage.TestBlockId;
import org.gristmill.core.send.PagePool;

/**
 * The page pool's memory as Spark's memory manager sees it: storage memory, because it outlives tasks. It can push out
 * cached blocks and borrow what execution leaves free, and is not pushed out itself.
 */
record PoolMemory(MemoryManager manager) implements PagePool.Reservation {
  private static final TestBlockId NAME = new TestBlockId("gristmill-page-pool"); // only ever shows in Spark's log

  @Override
  public boolean acquire(long bytes) {
    return manager.acquireStorageMemory(NAME, bytes, MemoryMode.ON_HEAP);
  }

  @Override
  public void release(long bytes) {
    manager.releaseStorageMemory(bytes, MemoryMode.ON_HEAP);
  }
}
