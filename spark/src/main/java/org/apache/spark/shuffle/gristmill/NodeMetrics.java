package org.apache.spark.shuffle.gristmill;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.spark.metrics.source.Source;

/** Named numbers of ours in Spark's metrics system, for whatever sinks it has; and on one line for the log. */
final class NodeMetrics implements Source {
  private final MetricRegistry registry = new MetricRegistry();
  private final Map<String, LongSupplier> numbers = new LinkedHashMap<>();

  NodeMetrics with(String name, LongSupplier number) {
    numbers.put(name, number);
    registry.register(name, (Gauge<Long>) number::getAsLong);
    return this;
  }

  @Override
  public String sourceName() {
    return "gristmill";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }

  @Override
  public String toString() {
    StringBuilder line = new StringBuilder();
    numbers.forEach((name, number) -> line.append(line.length() == 0 ? "" : ", ").append(name).append(' ')
        .append(number.getAsLong()));
    return line.toString();
  }
}
