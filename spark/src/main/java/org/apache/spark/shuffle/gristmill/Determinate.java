package org.apache.spark.shuffle.gristmill;

import java.lang.ref.WeakReference;
import java.util.function.BooleanSupplier;
import org.apache.spark.ShuffleDependency;

/**
 * Whether a map that runs again gives the same records, so that it can inherit from its earlier attempt. Asked only when a map
 * has been lost, because Spark fixes the answer when it is first asked; and without keeping the shuffle from being collected.
 */
final class Determinate implements BooleanSupplier {
  private final WeakReference<ShuffleDependency<?, ?, ?>> dependency;

  Determinate(ShuffleDependency<?, ?, ?> dependency) {
    this.dependency = new WeakReference<>(dependency);
  }

  @Override
  public boolean getAsBoolean() {
    ShuffleDependency<?, ?, ?> d = dependency.get();
    return d != null && !d.rdd().outputDeterministicLevel().toString().equals("INDETERMINATE");
  }
}
