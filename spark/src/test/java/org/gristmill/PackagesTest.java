package org.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.gristmill.core.format.Segment;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * All files lay in two packages. A reader could not see what depends on what, or what a new version of Spark may break.
 * Now packages use each other in one direction, and everything that is private to Spark is used in one package.
 */
class PackagesTest {
  /** The packages in their order: each uses only those above it. */
  private static final List<String> ORDER = List.of(
      "org.gristmill.core.plan",
      "org.gristmill.core.format",
      "org.gristmill.core.lifecycle",
      "org.gristmill.core.send",
      "org.gristmill.core.home",
      "org.gristmill.core.driver",
      "org.gristmill.core.read",
      "org.gristmill.spark.node",
      "org.gristmill.spark.writer",
      "org.gristmill.spark.reader",
      "org.apache.spark.shuffle.gristmill");
  private static final String SEAM = ORDER.get(ORDER.size() - 1);
  private static final Path SOURCES = Path.of("src/main/java");
  private static final Map<String, ClassFile> CLASSES = new TreeMap<>();

  @BeforeAll
  static void readClassFiles() throws IOException, URISyntaxException {
    Path folder = Path.of(Segment.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        String name = folder.relativize(file).toString().replace('/', '.');
        CLASSES.put(name.substring(0, name.length() - ".class".length()), ClassFile.of(Files.readAllBytes(file)));
      }
    }
  }

  private static String packageOf(String className) {
    return className.substring(0, className.lastIndexOf('.'));
  }

  @Test
  void everyPackageUsesOnlyThoseBeforeIt() {
    List<String> climbing = new ArrayList<>();
    CLASSES.forEach((name, file) -> {
      int own = ORDER.indexOf(packageOf(name));
      assertTrue(own >= 0, name + " is in a package that is not in the list of this test");
      file.classes().stream().filter(used -> ORDER.indexOf(packageOf(used)) > own).forEach(used -> climbing.add(name + " uses " + used));
    });
    assertEquals(List.of(), climbing);
  }

  @Test
  void theCoreUsesNoSpark() {
    List<String> found = new ArrayList<>();
    CLASSES.forEach((name, file) -> file.classes().stream()
        .filter(used -> name.startsWith("org.gristmill.core.") && used.startsWith("org.apache.spark."))
        .forEach(used -> found.add(name + " uses " + used)));
    assertEquals(List.of(), found);
  }

  /**
   * Each in a line: a private class with the members of it that are used, or a public class with those that are
   * private.
   */
  private static Set<String> privateApi(boolean inSeam) {
    SparkApi spark = new SparkApi();
    Map<String, Set<String>> used = new TreeMap<>();
    CLASSES.forEach((name, file) -> {
      if (packageOf(name).equals(SEAM) == inSeam) {
        file.classes().forEach(c -> used.computeIfAbsent(c, k -> new TreeSet<>()));
        file.members().forEach((c, members) -> used.computeIfAbsent(c, k -> new TreeSet<>()).addAll(members));
      }
    });
    Set<String> lines = new TreeSet<>();
    used.forEach((name, members) -> {
      if (!name.startsWith("org.apache.spark.") || packageOf(name).equals(SEAM)) {
        return;
      }
      Set<String> shown = new TreeSet<>(members);
      shown.removeAll(Set.of("<init>", "MODULE$"));
      boolean isPrivate = spark.isPrivate(name);
      if (!isPrivate) {
        shown.removeIf(member -> !spark.isPrivate(name, member));
      }
      if (isPrivate || !shown.isEmpty()) {
        lines.add((name.substring("org.apache.spark.".length()) + ": " + String.join(" ", shown)).strip());
      }
    });
    return lines;
  }

  @Test
  void outsideOfTheSeamNothingIsUsedThatIsPrivateToSpark() {
    assertEquals(Set.of(), privateApi(false));
  }

  @Test
  void theSeamListsAllThatItUsesOfWhatIsPrivateToSpark() throws IOException {
    List<String> lines = Files.readAllLines(SOURCES.resolve(SEAM.replace('.', '/')).resolve("package-info.java"));
    List<String> listed = lines.subList(lines.indexOf(" * <pre>") + 1, lines.indexOf(" * </pre>")).stream().map(line -> line.substring(3))
        .toList();
    List<String> used = new ArrayList<>(privateApi(true));
    String whole = String.join("\n", listed).replaceAll("\n {4}", " "); // an entry may go on in lines that are set in
    assertEquals(String.join("\n", used), whole, "the list in package-info.java, between <pre> and </pre>");
  }

  /** The first ten lines of a package say what it is for. */
  @Test
  void everyPackageStatesItsInputItsOutputItsCallersAndItsLimits() throws IOException {
    for (String name : ORDER) {
      List<String> lines = Files.readAllLines(SOURCES.resolve(name.replace('.', '/')).resolve("package-info.java"));
      String first = String.join("\n", lines.subList(0, Math.min(10, lines.size())));
      for (String word : List.of("In:", "Out:", "Called by:", "Never:")) {
        assertTrue(first.contains(word), name + " does not say " + word);
      }
    }
    Set<String> used = new TreeSet<>();
    CLASSES.keySet().forEach(c -> used.add(packageOf(c)));
    List<String> all = new ArrayList<>(ORDER);
    Collections.sort(all);
    assertEquals(all, List.copyOf(used));
  }
}
