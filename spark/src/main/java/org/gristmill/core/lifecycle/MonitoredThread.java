package org.gristmill.core.lifecycle;

import java.util.function.Consumer;

/** A daemon thread that reports its end: exceptions go to its owner, which fails all threads that wait for it. */
public final class MonitoredThread extends Thread {
  /** The work of the thread. */
  public interface Body {
    void run() throws Exception;
  }

  private final Body body;
  private final Consumer<? super UnavailableException> owner;

  /** @param owner told, on this thread, if the body ends by anything that was thrown */
  public MonitoredThread(String name, Body body, Consumer<? super UnavailableException> owner) {
    super(name);
    this.body = body;
    this.owner = owner;
    setDaemon(true);
  }

  @Override
  public void run() {
    try {
      body.run();
    } catch (Throwable e) {
      owner.accept(new UnavailableException("the thread " + getName() + " of this executor ended: " + e, e));
    }
  }
}
