package org.gristmill.spark.node;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.gristmill.core.format.Message;
import org.gristmill.core.home.PageStore;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.send.PagePool;

/** The services of Spark that an {@link ExecutorNode} needs. */
public interface SparkExecutor {
  /** This executor, and where its block transfer listens. */
  Executor executor();

  /** Memory that execution and storage share. */
  long sharedMemoryBytes();

  /** Storage memory for the page pool. */
  PagePool.Reservation poolMemory();

  int disks();

  /** Places files in Spark's local folders, one for each shuffle and disk, with names that end with {@code suffix}. */
  PageStore.FileChooser files(String suffix);

  /**
   * Delivers messages of the driver to the node from now on, and registers it with the driver. Throws if the driver
   * does not answer.
   */
  void register(ExecutorNode node, long timeoutMs);

  /** Sends a message to the driver and waits for the answer, at most for the time-out. */
  Message ask(Message message, long timeoutMs);

  /** Sends a parcel, given in pieces, to another executor. */
  CompletableFuture<Void> upload(Executor to, int shuffle, long number, List<byte[]> pieces);

  /** Adds the node's numbers to Spark's metrics system. */
  void report(NodeMetrics metrics);

  /** Delivers no more messages, and takes the numbers away. */
  void close();
}
