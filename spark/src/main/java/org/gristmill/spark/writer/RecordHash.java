package org.gristmill.spark.writer;

import java.nio.ByteBuffer;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.format.Digest;
import scala.Product;
import scala.Tuple2;
import scala.Tuple3;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The hash of a key or value that is serialised into a stream where its bytes depend on the records before it, as
 * Java's serialiser writes them. Of the usual types it is that of their value; of others that of their bytes,
 * serialised alone. Equal objects of two attempts have the same hash also if these ran in different processes: so
 * {@code hashCode} is used only where its result is specified.
 */
final class RecordHash {
  private static final ClassTag<Object> ANY = ClassTag$.MODULE$.Any();

  private RecordHash() {}

  /** True if the hash of an object is made in no time. */
  static boolean isNumber(Object o) {
    return o instanceof Long || o instanceof Integer || o instanceof Double;
  }

  /** Takes an object into a hash. */
  static long add(long hash, Object o, SerializerInstance serializer) {
    if (o == null) {
      return Digest.step(hash, Long.MIN_VALUE + 1);
    } else if (o instanceof Tuple2 || o instanceof Tuple3) {
      Product tuple = (Product) o;
      long h = Digest.step(hash, tuple.productArity());
      for (int i = 0; i < tuple.productArity(); i++) {
        h = add(h, tuple.productElement(i), serializer);
      }
      return h;
    } else if (o instanceof byte[] bytes) {
      return Digest.hash(bytes, 0, bytes.length, hash);
    } else if (o instanceof Long || o instanceof Integer || o instanceof Short || o instanceof Byte) {
      return Digest.step(hash, ((Number) o).longValue());
    } else if (o instanceof Double number) {
      return Digest.step(hash, Double.doubleToLongBits(number));
    } else if (o instanceof String text) {
      return addText(hash, text);
    } else if (o instanceof Boolean || o instanceof Character || o instanceof Float) {
      return Digest.step(hash, o.hashCode());
    }
    ByteBuffer serialized = serializer.serialize(o, ANY);
    byte[] bytes = new byte[serialized.remaining()];
    serialized.get(bytes);
    return Digest.hash(bytes, 0, bytes.length, hash);
  }

  /** All characters, because many strings have the same {@code hashCode}, "Aa" and "BB" among them. */
  static long addText(long hash, String text) {
    long h = Digest.step(hash, text.length());
    long word = 0;
    for (int i = 0; i < text.length(); i++) {
      word = word << Character.SIZE | text.charAt(i);
      if ((i & 3) == 3) {
        h = Digest.step(h, word);
        word = 0;
      }
    }
    return Digest.step(h, word);
  }
}
