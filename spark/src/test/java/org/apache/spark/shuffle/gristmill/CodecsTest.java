package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.spark.SparkConf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every codec of Spark with both serialisers, and with Kryo's unsafe input and output. */
class CodecsTest {
  private static final WordJob JOB = new WordJob("a-word-and-its-number-");

  @ParameterizedTest
  @CsvSource({"lz4,Java", "lz4,Kryo", "lzf,Java", "lzf,Kryo", "snappy,Java", "snappy,Kryo", "zstd,Java", "zstd,Kryo",
      "none,Java", "none,Kryo", "lz4,Kryo unsafe", "lzf,Kryo unsafe", "snappy,Kryo unsafe", "zstd,Kryo unsafe"})
  void recordsComeBackThroughEveryCodecAndSerialiser(String codec, String serialiser) {
    SparkConf conf = new SparkConf(false)
        .set("spark.serializer", "org.apache.spark.serializer." + serialiser.replace(" unsafe", "") + "Serializer")
        .set("spark.kryo.unsafe", String.valueOf(serialiser.endsWith("unsafe")));
    if (codec.equals("none")) {
      conf.set("spark.shuffle.compress", "false");
    } else {
      conf.set("spark.io.compression.codec", codec);
    }
    try (TestCluster cluster = new TestCluster("local[2]", conf)) {
      assertEquals(JOB.expected(), JOB.letters(JOB.groups(cluster)));
    }
  }
}
