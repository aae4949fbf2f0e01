package org.gristmill.core.lifecycle;

import java.io.IOException;

/**
 * A thread of this executor has ended, or a disk does not answer. The exception has the stack trace of the original
 * one, but not the original as its cause: Spark ends an executor in which a task fails with an error among its causes.
 */
public final class UnavailableException extends IOException {
  private static final long serialVersionUID = 1L;

  public UnavailableException(String message, Throwable thrown) {
    super(message);
    setStackTrace(thrown.getStackTrace());
  }

  public UnavailableException(String message) {
    super(message);
  }
}
