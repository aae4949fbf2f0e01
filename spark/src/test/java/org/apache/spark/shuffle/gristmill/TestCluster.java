package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.util.Utils$;
import org.gristmill.core.driver.Coordinator;

/** A local cluster whose executors are processes of their own, with our shuffle and nothing falling back. */
final class TestCluster implements AutoCloseable {
  final JavaSparkContext context;
  private final Path folder;

  TestCluster(int executors, SparkConf extra) {
    this("local-cluster[" + executors + ",1,800]", extra);
  }

  TestCluster(String master, SparkConf extra) {
    try {
      folder = Files.createTempDirectory(Path.of("target"), "cluster").toAbsolutePath();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    SparkConf conf = new SparkConf(false).setMaster(master).setAppName("gristmill test")
        .set("spark.executor.memory", "800m")
        .set("spark.shuffle.manager", GristmillShuffleManager.class.getName())
        .set("spark.gristmill.fallback", "false")
        .set("spark.gristmill.page.bytes", "4k") // small enough that a test's pages fill up and leave early
        .set("spark.gristmill.parcel.bytes", "32k")
        .set("spark.gristmill.segment.bytes", "2k")
        .set("spark.gristmill.append.bytes", "16k")
        .set("spark.gristmill.store.bytes", "16k") // some of a home's partitions are in memory, some are written
        .set("spark.local.dir", folder.toString())
        .set("spark.ui.enabled", "false")
        .set("spark.sql.shuffle.partitions", "8")
        .set("spark.locality.wait", "100ms")
        .set("spark.stage.maxConsecutiveAttempts", "10")
        .set("spark.task.maxFailures", "8");
    for (var setting : extra.getAll()) {
      conf.set(setting._1(), setting._2());
    }
    Utils$.MODULE$.clearLocalRootDirs(); // else a worker takes the folder of the first cluster of this process
    context = new JavaSparkContext(conf);
  }

  TestCluster(int executors) {
    this(executors, new SparkConf(false));
  }

  /** The processes of live executors; at least one, waited for. */
  static List<ProcessHandle> executors() throws InterruptedException {
    while (true) {
      List<ProcessHandle> found = ProcessHandle.current().descendants().filter(TestCluster::isExecutor).toList();
      if (!found.isEmpty()) {
        return found;
      }
      Thread.sleep(50);
    }
  }

  /** Java's own view of a process leaves out command lines as long as these. */
  private static boolean isExecutor(ProcessHandle process) {
    try {
      return commandLine(process).contains("CoarseGrainedExecutorBackend");
    } catch (IOException e) {
      return false; // it has ended
    }
  }

  private static String commandLine(ProcessHandle process) throws IOException {
    return Files.readString(Path.of("/proc/" + process.pid() + "/cmdline"), StandardCharsets.ISO_8859_1);
  }

  /** The files that hold partitions. */
  List<Path> storeFiles() throws IOException {
    return files().stream().filter(file -> file.toString().endsWith(".store")).toList();
  }

  /** The names of all files of executors that have this word in them. */
  List<String> filesWith(String word) throws IOException {
    List<String> found = new ArrayList<>();
    for (Path file : files()) {
      if (Files.readString(file, StandardCharsets.ISO_8859_1).contains(word)) {
        found.add(file.getFileName().toString());
      }
    }
    return found;
  }

  /** All files below Spark's local folders. Spark may delete others while we look. */
  private List<Path> files() throws IOException {
    List<Path> found = new ArrayList<>();
    Files.walkFileTree(folder, new SimpleFileVisitor<>() {
      @Override
      public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
        found.add(file);
        return FileVisitResult.CONTINUE;
      }

      @Override
      public FileVisitResult visitFileFailed(Path file, IOException gone) {
        return FileVisitResult.CONTINUE;
      }

      @Override
      public FileVisitResult postVisitDirectory(Path folder, IOException gone) {
        return FileVisitResult.CONTINUE;
      }
    });
    Collections.sort(found);
    return found;
  }

  /** Waits until the driver knows {@code count} executors, all of them alive. */
  void awaitExecutors(int count) throws InterruptedException {
    while (true) {
      Set<String> alive = new HashSet<>();
      for (ProcessHandle executor : executors()) {
        try {
          alive.add(executorId(executor));
        } catch (IOException e) {
          // it has just ended
        }
      }
      if (alive.size() >= count && alive.equals(new HashSet<>(coordinator().executors()))) {
        return;
      }
      Thread.sleep(20);
    }
  }

  /** The live executor that holds a store file open. */
  static ProcessHandle writerOf(Path store) throws InterruptedException {
    for (ProcessHandle executor : executors()) {
      try (Stream<Path> open = Files.list(Path.of("/proc/" + executor.pid() + "/fd"))) {
        if (open.anyMatch(fd -> isLinkTo(fd, store))) {
          return executor;
        }
      } catch (IOException | UncheckedIOException e) {
        continue; // it has just ended
      }
    }
    throw new IllegalStateException("no executor has " + store + " open");
  }

  /** Spark's name of an executor. */
  static String executorId(ProcessHandle executor) throws IOException {
    List<String> words = List.of(commandLine(executor).split("\0"));
    return words.get(words.indexOf("--executor-id") + 1);
  }

  private static boolean isLinkTo(Path link, Path file) {
    try {
      return Files.readSymbolicLink(link).equals(file);
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  /** The driver's part of the shuffle. */
  Coordinator coordinator() {
    return ((GristmillShuffleManager) SparkEnv.get().shuffleManager()).coordinator();
  }

  /** Waits until no executor holds pages any more of the shuffle that the RDD reads. */
  void awaitDelivery(JavaPairRDD<?, ?> shuffled) throws InterruptedException {
    int shuffle = shuffle(shuffled.rdd()).shuffleId();
    while (coordinator().flushBegins(shuffle).values().stream().anyMatch(attempts -> !attempts.isEmpty())) {
      Thread.sleep(10);
    }
  }

  /** The shuffle that an RDD reads, through the narrow steps on top of it. */
  static ShuffleDependency<?, ?, ?> shuffle(RDD<?> rdd) {
    Dependency<?> first = rdd.dependencies().head();
    return first instanceof ShuffleDependency<?, ?, ?> found ? found : shuffle(first.rdd());
  }

  @Override
  public void close() {
    context.close();
  }
}
