package org.gristmill.core.lifecycle;

import java.util.function.Consumer;

/** A daemon thread that reports its end: exceptions go to its owner, which fails all threads that wait for it. */
public final class MonitoredThread extends Thread {
  /** The work of the thread. */
  public interface Body {
    void run() throws Exception;
  }

  /** @param owner told, on this thread, if the body ends by anything that was thrown */
  public MonitoredThread(String name, Body body, Consumer<? super UnavailableException> owner) {
    super(() -> {
      try {
        body.run();
      } catch (Throwable e) {
        owner.accept(new UnavailableException("the thread " + name + " of this executor ended: " + e, e));
      }
    }, name);
    setDaemon(true);
  }
}
