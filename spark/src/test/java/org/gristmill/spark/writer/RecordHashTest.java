package org.gristmill.spark.writer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.format.Digest;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

class RecordHashTest {
  private final SerializerInstance serializer = new JavaSerializer(new SparkConf(false)).newInstance();

  private long hash(Object key, Object value) {
    return hash(key, value, 3);
  }

  private long hash(Object key, Object value, int partition) {
    return RecordHash.add(RecordHash.add(Digest.start(partition), key, serializer), value, serializer);
  }

  /**
   * A map that drew one of "Aa" and "BB", which have the same hashCode, passed for one that had written the same again.
   */
  @Test
  void stringsWithTheSameHashCodeAreToldApart() {
    assertEquals("AaAaAa".hashCode(), "BBAaBB".hashCode());
    Set<Long> hashes = new HashSet<>();
    List<String> texts = List.of("", "Aa", "BB", "AaAaAa", "BBAaBB", "AaBBAa", "Aa\0", "\0Aa", "AaAaAaAa", "BBBBBBBB");
    texts.forEach(text -> hashes.add(hash(1, text)));
    texts.forEach(text -> hashes.add(hash(text, 1)));
    assertEquals(2 * texts.size(), hashes.size());
  }

  @Test
  void theSameRecordHasTheSameHashAndItsPartsKeepTheirPlaces() {
    assertEquals(hash(new String("grain"), new Tuple2<>(1L, 2.5)), hash("grain", new Tuple2<>(1L, 2.5)));
    assertNotEquals(hash("a", "bc"), hash("ab", "c"));
    assertNotEquals(hash(1, new Tuple2<>(new Tuple2<>(1, 2), 3)), hash(1, new Tuple2<>(1, new Tuple2<>(2, 3))));
    assertNotEquals(hash("a", "b"), hash("a", "b", 4));
  }
}
