package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

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
        .set("spark.local.dir", folder.toString())
        .set("spark.ui.enabled", "false")
        .set("spark.sql.shuffle.partitions", "8")
        .set("spark.locality.wait", "100ms")
        .set("spark.stage.maxConsecutiveAttempts", "10")
        .set("spark.task.maxFailures", "8");
    for (var setting : extra.getAll()) {
      conf.set(setting._1(), setting._2());
    }
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
      return Files.readString(Path.of("/proc/" + process.pid() + "/cmdline"), StandardCharsets.ISO_8859_1)
          .contains("CoarseGrainedExecutorBackend");
    } catch (IOException e) {
      return false; // it has ended
    }
  }

  /** The files that hold partitions. */
  List<Path> storeFiles() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(f -> f.toString().endsWith(".store")).sorted().toList();
    }
  }

  /** Spark's folders for blocks, one for each live process. */
  List<Path> blockFolders() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(f -> f.getFileName().toString().startsWith("blockmgr-")).sorted().toList();
    }
  }

  @Override
  public void close() {
    context.close();
  }
}
