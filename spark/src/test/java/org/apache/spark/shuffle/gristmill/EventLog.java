package org.apache.spark.shuffle.gristmill;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The event log of one application, as Spark's history server reads it. */
final class EventLog {
  private final List<JsonNode> events = new ArrayList<>();

  /** The log of the only application that was logged to the folder. */
  EventLog(Path folder) throws IOException {
    ObjectMapper json = new ObjectMapper();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(f -> Files.isRegularFile(f) && !f.getFileName().toString().startsWith(".")).sorted().toList()) {
        for (String line : Files.readAllLines(file)) {
          events.add(json.readTree(line));
        }
      }
    }
  }

  private List<JsonNode> events(String kind) {
    return events.stream().filter(e -> e.get("Event").asText().equals(kind)).toList();
  }

  /** The properties on the page Environment: of the last update that Spark has written. */
  Map<String, String> environment() {
    Map<String, String> properties = new TreeMap<>();
    List<JsonNode> updates = events("SparkListenerEnvironmentUpdate");
    updates.get(updates.size() - 1).get("Spark Properties").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
    return properties;
  }

  /** For each stage the sum over its tasks of every number among their metrics, by the name that it has in the log. */
  Map<Integer, Map<String, Long>> stages() {
    Map<Integer, Map<String, Long>> stages = new TreeMap<>();
    for (JsonNode task : events("SparkListenerTaskEnd")) {
      add("", task.get("Task Metrics"), stages.computeIfAbsent(task.get("Stage ID").asInt(), k -> new TreeMap<>()));
    }
    for (JsonNode stage : events("SparkListenerStageCompleted")) {
      JsonNode info = stage.get("Stage Info");
      for (JsonNode sum : info.get("Accumulables")) {
        if (sum.path("Metadata").asText().equals("sql")) {
          stages.computeIfAbsent(info.get("Stage ID").asInt(), k -> new TreeMap<>())
              .merge("SQL " + sum.get("Name").asText(), sum.get("Value").asLong(), Long::sum);
        }
      }
    }
    return stages;
  }

  private static void add(String prefix, JsonNode metrics, Map<String, Long> sums) {
    metrics.fields().forEachRemaining(metric -> {
      if (metric.getValue().isObject()) {
        add(prefix + metric.getKey() + ": ", metric.getValue(), sums);
      } else if (metric.getValue().isNumber()) {
        sums.merge(prefix + metric.getKey(), metric.getValue().asLong(), Long::sum);
      }
    });
  }
}
