package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Tuple2;

/** Every codec of Spark with both serialisers. */
class CodecsTest {
  private static final String WORD = "a-word-and-its-number-";

  @ParameterizedTest
  @CsvSource({"lz4,Java", "lz4,Kryo", "lzf,Java", "lzf,Kryo", "snappy,Java", "snappy,Kryo", "zstd,Java", "zstd,Kryo",
      "none,Java", "none,Kryo"})
  void recordsComeBackThroughEveryCodecAndSerialiser(String codec, String serialiser) {
    SparkConf conf = new SparkConf(false)
        .set("spark.serializer", "org.apache.spark.serializer." + serialiser + "Serializer");
    if (codec.equals("none")) {
      conf.set("spark.shuffle.compress", "false");
    } else {
      conf.set("spark.io.compression.codec", codec);
    }
    try (TestCluster cluster = new TestCluster("local[2]", conf)) {
      assertEquals(expected(), counts(cluster));
    }
  }

  private static Map<Integer, Long> counts(TestCluster cluster) {
    JavaPairRDD<Integer, String> words = cluster.context.parallelize(IntStream.range(0, 5000).boxed().toList(), 6)
        .mapToPair(i -> new Tuple2<>(i % 50, WORD + i));
    return new TreeMap<>(words.groupByKey(5).mapValues(values -> {
      long letters = 0;
      for (String value : values) {
        letters += value.length();
      }
      return letters;
    }).collectAsMap());
  }

  private static Map<Integer, Long> expected() {
    Map<Integer, Long> letters = new TreeMap<>();
    for (int i = 0; i < 5000; i++) {
      letters.merge(i % 50, (long) (WORD + i).length(), Long::sum);
    }
    return letters;
  }
}
