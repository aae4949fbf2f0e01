package org.apache.spark.shuffle.gristmill;

import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** A job whose records all contain one word: groups them by key, and counts the letters of each group. */
record WordJob(String word) {
  static final int PARTITIONS = 5;
  private static final int RECORDS = 5000;
  private static final int KEYS = 50;

  JavaPairRDD<Integer, Iterable<String>> groups(TestCluster cluster) {
    String prefix = word;
    return cluster.context.parallelize(IntStream.range(0, RECORDS).boxed().toList(), 6)
        .mapToPair(i -> new Tuple2<>(i % KEYS, prefix + i)).groupByKey(PARTITIONS);
  }

  Map<Integer, Long> letters(JavaPairRDD<Integer, Iterable<String>> groups) {
    return new TreeMap<>(groups.mapValues(values -> {
      long letters = 0;
      for (String value : values) {
        letters += value.length();
      }
      return letters;
    }).collectAsMap());
  }

  Map<Integer, Long> expected() {
    Map<Integer, Long> letters = new TreeMap<>();
    for (int i = 0; i < RECORDS; i++) {
      letters.merge(i % KEYS, (long) (word + i).length(), Long::sum);
    }
    return letters;
  }
}
