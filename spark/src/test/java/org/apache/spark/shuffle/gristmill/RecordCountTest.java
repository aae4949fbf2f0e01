package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.serializer.DeserializationStream;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * Records that a reader did not get were missing in the answer, whatever had kept them from it, and the job succeeded.
 * Here a serialiser gives too few or too many: the reader notices, and maps run again.
 */
@Timeout(1800)
class RecordCountTest {
  private static final int RECORDS = 3000;
  private static TestCluster cluster;

  @BeforeAll
  static void start() {
    cluster = new TestCluster(2, new SparkConf(false).set("spark.stage.maxConsecutiveAttempts", "4"));
  }

  @AfterAll
  static void stop() {
    cluster.close();
  }

  /** Kryo, but some streams give {@code more} records than they have: one less, or one twice. */
  static final class Miscounting extends Serializer implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final Map<String, AtomicInteger> FAULTS = new ConcurrentHashMap<>(); // so far, in this process

    private final KryoSerializer kryo = new KryoSerializer(new SparkConf(false));
    private final String name;
    private final int more;
    private final int faults;
    private final boolean joined;

    /** @param faults streams of each executor that are wrong */
    Miscounting(int more, int faults, boolean joined) {
      name = more + " " + faults + " " + joined;
      this.more = more;
      this.faults = faults;
      this.joined = joined;
    }

    @Override
    public boolean supportsRelocationOfSerializedObjects() {
      return joined;
    }

    @Override
    public SerializerInstance newInstance() {
      return new Instance(this, kryo.newInstance());
    }

    Iterator<Tuple2<Object, Object>> records(Iterator<Tuple2<Object, Object>> right) {
      if (FAULTS.computeIfAbsent(name, k -> new AtomicInteger()).getAndIncrement() >= faults) {
        return right;
      }
      List<Tuple2<Object, Object>> wrong = new ArrayList<>();
      right.foreach(wrong::add);
      if (more > 0) {
        wrong.add(wrong.get(0));
      } else {
        wrong.remove(wrong.size() - 1);
      }
      return CollectionConverters.asScala(wrong.iterator());
    }
  }

  private static final class Instance extends SerializerInstance {
    private final Miscounting serializer;
    private final SerializerInstance kryo;

    Instance(Miscounting serializer, SerializerInstance kryo) {
      this.serializer = serializer;
      this.kryo = kryo;
    }

    @Override
    public <T> ByteBuffer serialize(T value, ClassTag<T> type) {
      return kryo.serialize(value, type);
    }

    @Override
    public <T> T deserialize(ByteBuffer bytes, ClassTag<T> type) {
      return kryo.deserialize(bytes, type);
    }

    @Override
    public <T> T deserialize(ByteBuffer bytes, ClassLoader loader, ClassTag<T> type) {
      return kryo.deserialize(bytes, loader, type);
    }

    @Override
    public SerializationStream serializeStream(OutputStream out) {
      return kryo.serializeStream(out);
    }

    @Override
    public DeserializationStream deserializeStream(InputStream in) {
      DeserializationStream stream = kryo.deserializeStream(in);
      return new DeserializationStream() {
        @Override
        public <T> T readObject(ClassTag<T> type) {
          return stream.readObject(type);
        }

        @Override
        public Iterator<Tuple2<Object, Object>> asKeyValueIterator() {
          return serializer.records(stream.asKeyValueIterator());
        }

        @Override
        public void close() {
          stream.close();
        }
      };
    }
  }

  /** The numbers below RECORDS, through a shuffle of a map's records in several segments. */
  private static JavaPairRDD<Integer, Integer> shuffled(Serializer serializer) {
    JavaPairRDD<Integer, Integer> shuffled = cluster.context.parallelize(IntStream.range(0, RECORDS).boxed().toList(), 6)
        .mapToPair(i -> new Tuple2<>(i, i)).partitionBy(new HashPartitioner(5));
    ((ShuffledRDD<?, ?, ?>) shuffled.rdd()).setSerializer(serializer);
    return shuffled;
  }

  private static List<Integer> sorted(JavaPairRDD<Integer, Integer> pairs) {
    return pairs.keys().collect().stream().sorted().toList();
  }

  @Test
  void recordsThatAreMissingOrDoubledOnceAreReadAgain() {
    List<Integer> expected = IntStream.range(0, RECORDS).boxed().toList();
    for (int more : new int[] {-1, 1}) {
      for (boolean joined : new boolean[] {true, false}) {
        long before = cluster.coordinator().counters().incompleteReads();
        assertEquals(expected, sorted(shuffled(new Miscounting(more, 1, joined))), more + " more, joined: " + joined);
        assertTrue(cluster.coordinator().counters().incompleteReads() > before, more + " more, joined: " + joined);
      }
    }
  }

  @Test
  void recordsThatAreMissingOrDoubledEachTimeEndTheJobWithTheNumbers() {
    for (int more : new int[] {-1, 1}) {
      String error = assertThrows(SparkException.class, () -> sorted(shuffled(new Miscounting(more, Integer.MAX_VALUE, true))))
          .getMessage();
      assertTrue(error.contains((600 + more) + " of 600 records came"), error);
    }
  }

  @Test
  void aTaskThatTakesTheFirstRecordsOnlyIsNotAskedForTheOthers() {
    assertEquals(10, shuffled(new Miscounting(1, Integer.MAX_VALUE, false)).take(10).size());
  }
}
