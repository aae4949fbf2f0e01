package org.apache.spark.shuffle.gristmill;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import org.apache.spark.metrics.source.Source;
import org.gristmill.spark.node.NodeMetrics;

/** The numbers of a node in Spark's metrics system, for all of its sinks. */
final class MetricsSource implements Source {
  private final MetricRegistry registry = new MetricRegistry();

  MetricsSource(NodeMetrics metrics) {
    metrics.numbers().forEach((name, number) -> registry.register(name, (Gauge<Long>) number::getAsLong));
  }

  @Override
  public String sourceName() {
    return "gristmill";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
