package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * With {@code spark.reducer.maxSizeInFlight} below 1 MiB every record from another executor was lost, in silence:
 * 30,666 of 32,000 rows. Now no setting of Spark's loses a row. Each test has many at once;
 * {@code ci/spark-settings.sh} has them one by one, and all values.
 */
@Timeout(1800)
class ShuffleSettingsTest {
  private static void check(Map<String, String> settings) throws InterruptedException {
    SparkConf conf = new SparkConf(false);
    settings.forEach(conf::set);
    SettingsJobs.Outcome outcome = SettingsJobs.run(conf);
    if (outcome.error() != null) {
      throw new AssertionError(settings.toString(), outcome.error());
    }
    assertEquals(SettingsJobs.expected(), outcome.rows());
    assertTrue(outcome.remoteBytes() > 1 << 16, "only " + outcome.remoteBytes() + " bytes came from other executors");
  }

  @Test
  void noRowIsLostWithTinyValues() throws Exception {
    check(Map.ofEntries(Map.entry("spark.reducer.maxSizeInFlight", "512k"), Map.entry("spark.shuffle.file.buffer", "1k"),
        Map.entry("spark.io.compression.lz4.blockSize", "64b"), Map.entry("spark.shuffle.sort.initialBufferSize", "1k"),
        Map.entry("spark.shuffle.unsafe.file.output.buffer", "1k"), Map.entry("spark.shuffle.spill.numElementsForceSpillThreshold", "100"),
        Map.entry("spark.shuffle.mapOutput.minSizeForBroadcast", "1k"), Map.entry("spark.kryoserializer.buffer", "1k"),
        Map.entry("spark.serializer", "org.apache.spark.serializer.KryoSerializer"), Map.entry("spark.memory.storageFraction", "0.01"),
        Map.entry("spark.network.maxRemoteBlockSizeFetchToMem", "1k"), Map.entry("spark.sql.adaptive.advisoryPartitionSizeInBytes", "1k")));
  }

  @Test
  void noRowIsLostWithZeroOrOff() throws Exception {
    check(Map.ofEntries(Map.entry("spark.reducer.maxSizeInFlight", "0"), Map.entry("spark.network.maxRemoteBlockSizeFetchToMem", "0"),
        Map.entry("spark.shuffle.accurateBlockThreshold", "0"), Map.entry("spark.shuffle.sort.bypassMergeThreshold", "0"),
        Map.entry("spark.shuffle.mapOutput.minSizeForBroadcast", "0"), Map.entry("spark.storage.memoryMapThreshold", "0"),
        Map.entry("spark.shuffle.io.maxRetries", "0"), Map.entry("spark.shuffle.compress", "false"),
        Map.entry("spark.shuffle.spill.compress", "false"), Map.entry("spark.shuffle.checksum.enabled", "false"),
        Map.entry("spark.shuffle.detectCorrupt", "false"), Map.entry("spark.memory.storageFraction", "0"),
        Map.entry("spark.sql.adaptive.enabled", "false")));
  }

  /** With a pool that holds one small page, every segment waits for the one before it. */
  @Test
  void noRowIsLostWithOneOfEverythingAndTheLeastValuesOfOurOwn() throws Exception {
    check(Map.ofEntries(Map.entry("spark.reducer.maxSizeInFlight", "1"), Map.entry("spark.reducer.maxReqsInFlight", "1"),
        Map.entry("spark.reducer.maxBlocksInFlightPerAddress", "1"), Map.entry("spark.shuffle.io.serverThreads", "1"),
        Map.entry("spark.shuffle.io.clientThreads", "1"), Map.entry("spark.shuffle.io.maxRetries", "1"),
        Map.entry("spark.shuffle.minNumPartitionsToHighlyCompress", "1"), Map.entry("spark.shuffle.accurateBlockThreshold", "1"),
        Map.entry("spark.shuffle.sort.bypassMergeThreshold", "1"), Map.entry("spark.shuffle.mapOutput.dispatcher.numThreads", "1"),
        Map.entry("spark.storage.memoryMapThreshold", "1"), Map.entry("spark.sql.shuffle.partitions", "1"),
        Map.entry("spark.io.compression.codec", "snappy"), Map.entry("spark.io.compression.snappy.blockSize", "1k"),
        Map.entry("spark.gristmill.pool.bytes", "1k"), Map.entry("spark.gristmill.page.bytes", "1k"),
        Map.entry("spark.gristmill.segment.bytes", "1k"), Map.entry("spark.gristmill.task.bytes", "1k"),
        Map.entry("spark.gristmill.parcel.bytes", "1k"), Map.entry("spark.gristmill.window.bytes", "1k"),
        Map.entry("spark.gristmill.append.bytes", "1k"), Map.entry("spark.gristmill.store.bytes", "1k"),
        Map.entry("spark.gristmill.read.bytes", "1k"), Map.entry("spark.gristmill.send.tries", "1"),
        Map.entry("spark.gristmill.send.retry", "0"), Map.entry("spark.gristmill.plan.share", "0"),
        Map.entry("spark.gristmill.pool.threshold", "0"), Map.entry("spark.gristmill.recovery", "replicate")));
  }
}
