package org.apache.spark.shuffle.gristmill;

import java.lang.ref.WeakReference;
import org.apache.spark.ShuffleDependency;
import org.gristmill.core.driver.Dependency;

/**
 * The coordinator's view of a dependency. It does not keep the dependency from being collected, because Spark removes a
 * shuffle when its dependency is collected. SQL also removes shuffles whose dependency lives on, and may run them again
 * ({@code spark.sql.classic.shuffleDependency.fileCleanup.enabled}).
 */
final class WeakDependency implements Dependency {
  private final WeakReference<ShuffleDependency<?, ?, ?>> dependency;

  WeakDependency(ShuffleDependency<?, ?, ?> dependency) {
    this.dependency = new WeakReference<>(dependency);
  }

  /**
   * False for a barrier stage as well, all of whose tasks Spark runs again: a task that inherited its output would not
   * run, and the others would wait for it in {@code barrier()}. Asked only when a map runs again, because Spark fixes
   * the answer when it is first asked.
   */
  @Override
  public boolean isDeterminate() {
    ShuffleDependency<?, ?, ?> d = dependency.get();
    return d != null && !d.rdd().isBarrier() && !d.rdd().outputDeterministicLevel().toString().equals("INDETERMINATE");
  }

  @Override
  public boolean isCollected() {
    return dependency.get() == null;
  }
}
