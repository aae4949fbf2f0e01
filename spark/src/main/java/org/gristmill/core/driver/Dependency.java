package org.gristmill.core.driver;

/** The program's own object for a shuffle, which the driver asks. */
public interface Dependency {
  /** Whether a map that runs again gives the same records, so that it can inherit from its earlier attempt. */
  boolean isDeterminate();

  /** True if no job can run this shuffle any more. */
  default boolean isCollected() {
    return false;
  }
}
