package org.gristmill.spark.node;

import java.io.IOException;

/** Memory that Spark lends to one task. */
public interface TaskMemory {
  /** Empties buffers because another operator of the task needs their memory. */
  interface Spill {
    /** Returns the number of bytes that it has given back by {@link TaskMemory#free}. */
    long spill() throws IOException;
  }

  /** Makes the memory of an operator of the task that is running. */
  interface Lender {
    /** @param spill called on the thread of this call only */
    TaskMemory lend(Spill spill);
  }

  /** Returns how many of the bytes Spark has granted; it may make other operators of the task spill. */
  long acquire(long bytes);

  void free(long bytes);

  long used();
}
