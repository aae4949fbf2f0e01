package org.gristmill.core;

import java.io.IOException;

/**
 * Something here can do its work no more: a thread, or a disk that does not answer. It stands for what was thrown there with that one's
 * stack trace, but not as its cause: Spark ends an executor in which a task fails with an error among its causes.
 */
public final class EndedException extends IOException {
  private static final long serialVersionUID = 1L;

  public EndedException(String message, Throwable thrown) {
    super(message);
    setStackTrace(thrown.getStackTrace());
  }

  EndedException(String message) {
    super(message);
  }
}
