package org.gristmill.spark.node;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/** The named numbers of a node, for Spark's metrics system and, on one line, for the log. */
public final class NodeMetrics {
  private final Map<String, LongSupplier> numbers = new LinkedHashMap<>();

  NodeMetrics with(String name, LongSupplier number) {
    numbers.put(name, number);
    return this;
  }

  public Map<String, LongSupplier> numbers() {
    return numbers;
  }

  @Override
  public String toString() {
    return numbers.entrySet().stream().map(e -> e.getKey() + " " + e.getValue().getAsLong()).collect(Collectors.joining(", "));
  }
}
