package org.gristmill.core;

import java.util.function.Consumer;

/** A daemon thread whose end is noticed: what it throws goes to its owner, which fails everybody who waits for it. */
final class OwnedThread extends Thread {
  /** What the thread does until it is done. */
  interface Body {
    void run() throws Exception;
  }

  private final Body body;
  private final Consumer<? super EndedException> owner;

  /** @param owner told, on this thread, if the body ends by anything that was thrown */
  OwnedThread(String name, Body body, Consumer<? super EndedException> owner) {
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
      owner.accept(new EndedException("the thread " + getName() + " of this executor ended: " + e, e));
    }
  }
}
