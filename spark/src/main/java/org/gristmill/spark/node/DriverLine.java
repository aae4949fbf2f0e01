package org.gristmill.spark.node;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.gristmill.core.format.Message;

/**
 * Calls of an executor to the driver, from the thread that needs the answer, or from one of its own where nobody may
 * wait.
 */
final class DriverLine implements AutoCloseable {
  /** The way to the driver: sends a message and waits for the answer, at most for the time-out. */
  interface Ask {
    Message answer(Message message, long timeoutMs);
  }

  private final Ask ask;
  private final String executorId;
  private final long timeoutMs;
  private final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor(
      task -> daemon(task, "gristmill-driver-calls"));

  DriverLine(Ask ask, String executorId, long timeoutMs) {
    this.ask = ask;
    this.executorId = executorId;
    this.timeoutMs = timeoutMs;
  }

  Message call(Message message) {
    return ask.answer(message, timeoutMs);
  }

  /** The answer to a message that is answered by yes or no. */
  boolean isDone(Message message) {
    return ((Message.Done) call(message)).ok();
  }

  /** The same, where the driver itself waits for executors once. */
  boolean isDoneByOthers(Message message) {
    return ((Message.Done) ask.answer(message, 2 * timeoutMs)).ok();
  }

  /**
   * Calls the driver from a thread for that, again every second until the call returns true or this is closed. Never
   * blocks.
   */
  void untilDone(String what, BooleanSupplier call) {
    Runnable attempt = () -> {
      boolean done = false;
      try {
        done = call.getAsBoolean();
      } catch (Throwable e) { // Spark's RPC throws checked exceptions without saying so; an error would end this without a word
        if (!later.isShutdown()) {
          LOG.warn("The driver did not answer; in a second executor {} will again {}", executorId, what, e);
        }
      }
      if (!done) {
        later.schedule(() -> untilDone(what, call), 1, TimeUnit.SECONDS);
      }
    };
    if (!later.isShutdown()) {
      later.execute(attempt);
    }
  }

  @Override
  public void close() {
    later.shutdownNow();
  }

  static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }
}
