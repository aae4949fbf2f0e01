package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.serializer.KryoSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;

@Timeout(300)
class KryoRegistrationTest {
  /** Every job ended after four attempts: Spark serialises a tag with each upload, and Kryo did not know that tag. */
  @Test
  void aJobWhoseClassesMustBeRegisteredGivesItsAnswer() {
    SparkConf conf = new SparkConf(false).set("spark.serializer", KryoSerializer.class.getName())
        .set("spark.kryo.registrationRequired", "true").set("spark.gristmill.fallback", "true").set("spark.gristmill.fallback.blocksMin", "0")
        .set("spark.kryo.classesToRegister", "[Ljava.lang.Object;,[Lscala.Tuple2;,scala.collection.mutable.ArraySeq$ofRef");
    try (TestCluster cluster = new TestCluster(2, conf)) {
      JavaPairRDD<Integer, Long> sums = cluster.context.parallelize(IntStream.range(0, 10_000).boxed().toList(), 8)
          .mapToPair(i -> new Tuple2<>(i % 100, (long) i)).reduceByKey(Long::sum, 6);
      Map<Integer, Long> expected = IntStream.range(0, 10_000).boxed()
          .collect(Collectors.groupingBy(i -> i % 100, TreeMap::new, Collectors.summingLong(i -> i)));
      assertEquals(expected, new TreeMap<>(sums.collectAsMap()));
      // From Spark 4.3 on there is a class that Spark does not register itself, so its own shuffle is used.
      assertEquals(SparkTransfer.MINOR_MAX < 3, TestCluster.shuffle(sums.rdd()).shuffleHandle() instanceof GristmillShuffleHandle<?, ?, ?>);
    }
  }
}
