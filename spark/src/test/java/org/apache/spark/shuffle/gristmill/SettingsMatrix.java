package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;

/**
 * Every setting of Spark's that touches a shuffle, through absent, 0, 1, tiny and huge: the rows are right, or the sort
 * shuffle does not give them either. Values of several settings are set at once; where rows are not right, they are set
 * one by one. {@code ci/spark-settings.sh} runs it.
 */
class SettingsMatrix {
  private static final String[] SIZES = {"0", "1b", "512k", "1t"};
  private static final String[] COUNTS = {"0", "1", "2147483647"};
  private static final String[] THREADS = {"0", "1", "64"}; // Spark starts as many as it is told, until there are no more
  private static final String[] TIMES = {"0", "1ms", "100d"};
  private static final String[] OFF = {"false"}; // each of these is on unless it is set
  private static final String[] ON = {"true"};
  private static final String[] SHARES = {"0", "0.01", "1"};
  private static final String[] CODECS = {"lz4", "lzf", "snappy", "zstd", "none"};
  private static final String KRYO = "org.apache.spark.serializer.KryoSerializer";

  /** The settings, and those that a setting needs beside it. */
  private record Case(List<String> names, String[] values, Map<String, String> beside) {}

  private static Case of(String[] values, String... names) {
    return new Case(List.of(names), values, Map.of());
  }

  private static Case with(Map<String, String> beside, String[] values, String... names) {
    return new Case(List.of(names), values, beside);
  }

  private static final List<Case> CASES = List.of(
      of(new String[] {"0", "1", "1b", "512k", "1048575b", "2147483647b", "1t", "9223372036854775807"}, "spark.reducer.maxSizeInFlight"),
      of(SIZES, "spark.network.maxRemoteBlockSizeFetchToMem", "spark.maxRemoteBlockSizeFetchToMem",
          "spark.shuffle.accurateBlockThreshold", "spark.shuffle.file.buffer", "spark.shuffle.unsafe.file.output.buffer",
          "spark.shuffle.sort.initialBufferSize", "spark.shuffle.mapOutput.minSizeForBroadcast", "spark.shuffle.io.receiveBuffer",
          "spark.shuffle.io.sendBuffer", "spark.storage.memoryMapThreshold", "spark.io.compression.lz4.blockSize",
          "spark.shuffle.spill.initialMemoryThreshold", "spark.buffer.pageSize",
          "spark.sql.adaptive.advisoryPartitionSizeInBytes", "spark.sql.adaptive.coalescePartitions.minPartitionSize",
          "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"),
      with(Map.of("spark.io.compression.codec", "snappy"), SIZES, "spark.io.compression.snappy.blockSize"),
      with(Map.of("spark.io.compression.codec", "zstd"), SIZES, "spark.io.compression.zstd.bufferSize"),
      with(Map.of("spark.io.compression.codec", "zstd"), new String[] {"-5", "0", "22", "100"}, "spark.io.compression.zstd.level"),
      with(Map.of("spark.io.compression.codec", "zstd"), new String[] {"0", "2"}, "spark.io.compression.zstd.workers"),
      with(Map.of("spark.serializer", KRYO), SIZES, "spark.kryoserializer.buffer", "spark.kryoserializer.buffer.max"),
      with(Map.of("spark.memory.offHeap.enabled", "true"), new String[] {"0", "1", "16m"}, "spark.memory.offHeap.size"),
      of(COUNTS, "spark.reducer.maxReqsInFlight", "spark.reducer.maxBlocksInFlightPerAddress", "spark.shuffle.sort.bypassMergeThreshold",
          "spark.shuffle.minNumPartitionsToHighlyCompress", "spark.shuffle.maxChunksBeingTransferred", "spark.shuffle.io.maxRetries",
          "spark.shuffle.io.numConnectionsPerPeer", "spark.shuffle.io.backLog", "spark.shuffle.spill.numElementsForceSpillThreshold",
          "spark.shuffle.spill.batchSize", "spark.shuffle.mapOutput.parallelAggregationThreshold", "spark.shuffle.accurateBlockSkewedFactor",
          "spark.shuffle.maxAccurateSkewedBlockNumber", "spark.shuffle.maxAttemptsOnNettyOOM", "spark.shuffle.registration.maxAttempts",
          "spark.storage.localDiskByExecutors.cacheSize"),
      of(THREADS, "spark.shuffle.io.serverThreads", "spark.shuffle.io.clientThreads", "spark.shuffle.mapOutput.dispatcher.numThreads"),
      of(new String[] {"0", "1", "2047"}, "spark.rpc.message.maxSize"),
      of(new String[] {"0", "1", "3"}, "spark.sql.shuffle.partitions", "spark.default.parallelism",
          "spark.sql.adaptive.coalescePartitions.initialPartitionNum"),
      of(TIMES, "spark.shuffle.io.retryWait", "spark.shuffle.io.connectionTimeout", "spark.shuffle.io.connectionCreationTimeout",
          "spark.shuffle.registration.timeout", "spark.network.timeout", "spark.network.timeoutInterval", "spark.rpc.askTimeout",
          "spark.rpc.lookupTimeout", "spark.locality.wait", "spark.files.fetchTimeout"),
      of(OFF, "spark.shuffle.compress", "spark.shuffle.spill.compress", "spark.shuffle.checksum.enabled", "spark.shuffle.detectCorrupt",
          "spark.shuffle.io.preferDirectBufs", "spark.shuffle.io.lazyFD", "spark.shuffle.readHostLocalDisk",
          "spark.shuffle.sort.useRadixSort", "spark.shuffle.unsafe.fastMergeEnabled", "spark.network.sharedByteBufAllocators.enabled",
          "spark.network.io.preferDirectBufs", "spark.broadcast.compress", "spark.cleaner.referenceTracking", "spark.sql.adaptive.enabled",
          "spark.sql.adaptive.localShuffleReader.enabled", "spark.sql.adaptive.coalescePartitions.enabled",
          "spark.sql.adaptive.coalescePartitions.parallelismFirst", "spark.sql.adaptive.skewJoin.enabled",
          "spark.sql.execution.sortBeforeRepartition", "spark.sql.codegen.wholeStage"),
      with(Map.of("spark.gristmill.fallback", "true"), ON, "spark.shuffle.useOldFetchProtocol"),
      of(ON, "spark.shuffle.detectCorrupt.useExtraMemory", "spark.shuffle.io.enableVerboseMetrics",
          "spark.shuffle.service.fetch.rdd.enabled", "spark.shuffle.service.removeShuffle", "spark.shuffle.sync", "spark.speculation",
          "spark.excludeOnFailure.enabled", "spark.rdd.compress", "spark.sql.shuffle.orderIndependentChecksum.enabled",
          "spark.sql.execution.replaceHashWithSortAgg"),
      with(Map.of("spark.serializer", KRYO), new String[] {"false"}, "spark.kryo.referenceTracking", "spark.kryo.pool"),
      with(Map.of("spark.serializer", KRYO), new String[] {"true"}, "spark.kryo.unsafe", "spark.kryo.registrationRequired"),
      of(SHARES, "spark.memory.fraction", "spark.memory.storageFraction"),
      of(CODECS, "spark.io.compression.codec"),
      of(new String[] {KRYO, "org.apache.spark.serializer.JavaSerializer", "none"}, "spark.serializer"),
      of(new String[] {"0", "1", "2147483647"}, "spark.serializer.objectStreamReset"),
      of(new String[] {"NIO", "EPOLL", "none"}, "spark.shuffle.io.mode"),
      of(new String[] {"ADLER32", "CRC32", "CRC32C", "none"}, "spark.shuffle.checksum.algorithm"));

  /** Settings that switch off what other settings are about. A group has no value of these. */
  private static final Set<String> ALONE = Set.of("spark.shuffle.compress", "spark.shuffle.spill.compress", "spark.io.compression.codec",
      "spark.serializer", "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage",
      "spark.shuffle.useOldFetchProtocol", "spark.shuffle.io.mode", "spark.memory.fraction", "spark.rpc.message.maxSize");
  /** Values that Spark often does not work with. They share no group with others. */
  private static final Set<String> DOUBTFUL = Set.of("0", "1b", "none", "100", "1t", "100d", "2147483647");
  private static final int GROUP = Integer.getInteger("gristmill.settings.group", 6);

  private final List<String> expected = SettingsJobs.expected();
  private final Map<String, Integer> counts = new TreeMap<>();
  private final List<String> different = new ArrayList<>();

  /** One value of one setting. */
  private record Value(String name, String value, Map<String, String> beside) {
    SparkConf in(SparkConf conf) {
      beside.forEach(conf::set);
      return conf.set(name, value);
    }

    /** True if both can be set at once, and neither hides what the other does. */
    boolean fits(Value other) {
      return !name.equals(other.name) && beside.equals(other.beside) && !ALONE.contains(name) && !ALONE.contains(other.name);
    }

    /** True if Spark itself does not start with it. */
    boolean isRefused() {
      SparkConf conf = new SparkConf(false).setMaster("local[1]").setAppName("gristmill test").set("spark.ui.enabled", "false");
      try (JavaSparkContext context = new JavaSparkContext(in(conf))) {
        return false;
      } catch (Throwable e) { // with whatever Spark has, errors too
        return true;
      }
    }

    @Override
    public String toString() {
      return name + " = " + value;
    }
  }

  @Test
  void rowsAreRightOrTheSortShuffleHasNoneEither() throws InterruptedException, IOException {
    Pattern wanted = Pattern.compile(System.getProperty("gristmill.settings", ""));
    // "2/8" are the settings 2, 10, 18 and so on.
    String[] part = System.getProperty("gristmill.settings.part", "0/1").split("/");
    List<Value> rest = new ArrayList<>();
    int number = 0;
    for (Case c : CASES) {
      for (String name : c.names) {
        if (number++ % Integer.parseInt(part[1]) != Integer.parseInt(part[0])) {
          continue;
        }
        for (String value : c.values) {
          Value one = new Value(name, value, c.beside);
          if (wanted.matcher(one.toString()).find()) {
            rest.add(one);
          }
        }
      }
    }
    rest.sort(Comparator.comparing(value -> DOUBTFUL.contains(value.value)));
    assertFalse(rest.isEmpty(), "no setting has a name with " + wanted);
    while (!rest.isEmpty()) {
      List<Value> group = new ArrayList<>(List.of(rest.remove(0)));
      boolean refused = GROUP > 1 && group.get(0).isRefused();
      for (Iterator<Value> others = rest.iterator(); !refused && group.size() < GROUP && others.hasNext();) {
        Value other = others.next();
        if (DOUBTFUL.contains(other.value) == DOUBTFUL.contains(group.get(0).value) && group.stream().allMatch(other::fits) && !other.isRefused()) {
          group.add(other);
          others.remove();
        }
      }
      run(group);
    }
    print("in all " + counts);
    assertEquals(List.of(), different);
  }

  /**
   * Runs the jobs with all values at once. If the rows are not right, each half does it again, so that the value shows
   * that matters.
   */
  private void run(List<Value> group) throws InterruptedException, IOException {
    SparkConf conf = new SparkConf(false);
    group.forEach(value -> value.in(conf));
    SettingsJobs.Outcome ours = SettingsJobs.run(conf.clone());
    if (expected.equals(ours.rows())) {
      for (Value value : group) {
        note(value, "right");
      }
    } else if (group.size() > 1) {
      run(group.subList(0, group.size() / 2));
      run(group.subList(group.size() / 2, group.size()));
    } else {
      note(group.get(0), ours.error() == null ? "WRONG: " + ours.rows().size() + " rows" : besideSort(ours, conf));
    }
  }

  private String besideSort(SettingsJobs.Outcome ours, SparkConf conf) throws InterruptedException {
    if (ours.reason().contains("Only one SparkContext") || ours.reason().contains("unable to create native thread")) {
      throw new AssertionError("what a value before has left lets no other be tried", ours.error());
    }
    SettingsJobs.Outcome sort = SettingsJobs.run(conf.clone().set("spark.shuffle.manager", "sort"));
    if (sort.error() == null) {
      // An application before that did not start may stop this one: Spark has one environment for a whole process.
      boolean right = true;
      for (int again = 0; again < 2; again++) {
        right &= expected.equals(SettingsJobs.run(conf.clone()).rows());
      }
      return (right ? "right twice, after: " : "DIFFERENT: the sort shuffle gives the rows, and Gristmill: ") + ours.reason();
    }
    return "refused by both: " + ours.reason() + (sort.reason().equals(ours.reason()) ? "" : " | the sort shuffle: " + sort.reason());
  }

  private void note(Value value, String verdict) throws IOException {
    String line = value + ": " + verdict;
    print(line);
    String kind = verdict.replaceFirst("[:,].*", "");
    counts.merge(kind, 1, Integer::sum);
    if (kind.equals("WRONG") || kind.equals("DIFFERENT")) {
      different.add(line);
    }
  }

  /** The output of a test appears when it ends; this one takes too long for that. */
  private static void print(String line) throws IOException {
    Files.writeString(Path.of("target/spark-settings.txt"), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }
}
