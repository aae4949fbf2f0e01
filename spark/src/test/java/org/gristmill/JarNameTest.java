package org.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * The plugin stayed at version 0.1.0 when the project went on to 0.2.0, and nobody could tell from the jar's name what
 * was in it.
 */
class JarNameTest {
  private static String first(String pattern, String file) throws IOException {
    Matcher found = Pattern.compile(pattern, Pattern.DOTALL).matcher(Files.readString(Path.of(file)));
    assertEquals(true, found.find(), file + " has no " + pattern);
    return found.group(1);
  }

  @Test
  void thePluginHasTheVersionOfTheProject() throws IOException {
    assertEquals(first("\\[workspace\\.package\\]\\s+version = \"([^\"]+)\"", "../Cargo.toml"),
        first("</artifactId>.*?<version>([^<]+)</version>", "pom.xml"));
  }

  /** The script and Maven build the same jars; one that is for no Spark of the other would be looked for in vain. */
  @Test
  void theScriptAndMavenNameJarsForTheSameVersionsOfSpark() throws IOException {
    assertEquals(versions("<spark\\.oldest>([\\d.]+)</spark\\.oldest>", "pom.xml"), versions("oldest=([\\d.]+)", "jar.sh"));
  }

  @Test
  void theReadmeNamesTheJarOfThisVersion() throws IOException {
    List<String> named = versions("gristmill-spark-4\\.\\d_2\\.13[-:](\\d+\\.\\d+\\.\\d+)", "README.md").stream().distinct().toList();
    assertEquals(List.of(first("</artifactId>.*?<version>([^<]+)</version>", "pom.xml")), named);
  }

  private static List<String> versions(String pattern, String file) throws IOException {
    return Pattern.compile(pattern).matcher(Files.readString(Path.of(file))).results().map(found -> found.group(1)).sorted().toList();
  }
}
