package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.spark.internal.config.ConfigEntry$;
import org.apache.spark.internal.config.package$;
import org.junit.jupiter.api.Test;

/** A user set how Spark's shuffle should work, and the plugin ignored it without a word. */
class SparkSettingsTest {
  @Test
  void everySettingOfSparksShuffleIsInTheDocuments() throws IOException {
    assertNotNull(package$.MODULE$); // registers the settings of Spark's core
    List<String> documented = Pattern.compile("`(spark\\.[A-Za-z.*]+)`").matcher(Files.readString(Path.of("docs/spark-settings.md")))
        .results().map(match -> match.group(1)).toList();
    TreeSet<String> missing = new TreeSet<>();
    int found = 0;
    for (String setting : ConfigEntry$.MODULE$.knownConfigs().keySet()) {
      if (setting.matches("spark\\.(shuffle|reducer|storage\\.decommission)\\..*")) {
        found++;
        if (documented.stream().noneMatch(d -> d.equals(setting) || d.endsWith("*") && setting.startsWith(d.substring(0, d.length() - 1)))) {
          missing.add(setting);
        }
      }
    }
    assertTrue(found > 50, "only " + found + " settings of Spark were found");
    assertEquals(new TreeSet<>(), missing);
  }
}
