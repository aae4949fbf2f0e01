package org.gristmill.spark.writer;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.HashPartitioner;
import org.apache.spark.Partitioner;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.format.Digest;
import scala.Product;
import scala.Tuple2;
import scala.Tuple3;

/**
 * Adds up the {@link Digest} of a map task, record by record.
 *
 * <p>A row of SQL has its columns told apart without their types. It is one word of eight bytes for each 64 columns
 * (which are null), one for each column, and bytes of any length, to which a column's word may point (offset and
 * length, 32 bits each):
 *
 * <pre>
 *  | length 4 | nulls 8 ... | column 8 | column 8 | ... | bytes ... |
 * </pre>
 */
final class DigestSums {
  private static final int COLUMNS_MAX = 32; // later ones share the sums of these
  private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final long ODD = 0x9e3779b97f4a7c15L;
  private static final int DOUBLE_EXPONENT_MIN = 512; // words with smaller ones are whole numbers: doubles of 1e-154 are rare
  private static final int DOUBLE_EXPONENT_MAX = 1536;
  private static final long WHOLE_MAX = 1L << 53; // a double holds it exactly

  private final boolean opaque;
  private boolean inSequence; // every key so far is its predecessor plus 1
  private long lastKey;
  private long records;
  private long keys;
  private long values;
  private int columns;
  private final long[] hashes = new long[2 * COLUMNS_MAX]; // of each column: of all records, and placed
  private final double[] numbers = new double[3 * COLUMNS_MAX]; // of each column: the sum, the weighted one, the magnitude

  DigestSums(Partitioner partitioner) {
    opaque = partitioner.getClass().getName().equals("org.apache.spark.api.python.PythonPartitioner"); // values are batches of records
    inSequence = partitioner instanceof HashPartitioner; // which Spark takes for round robin
  }

  /** A record of which key and value lie in {@code bytes}, one after the other. */
  void add(int partition, Object key, Object value, byte[] bytes, int from, int keyEnd, int to) {
    long place = Digest.start(partition);
    add(key, value, place, Digest.hash(bytes, from, keyEnd, place), Digest.hash(bytes, keyEnd, to, 0), to - keyEnd);
  }

  /** A record that is hashed by value, because its bytes depend on those before it. */
  void add(int partition, Object key, Object value, SerializerInstance serializer) {
    long place = Digest.start(partition);
    add(key, value, place, Digest.spread(RecordHash.add(place, key, serializer)), Digest.spread(RecordHash.add(0, value, serializer)), 0);
  }

  private void add(Object key, Object value, long place, long keyHash, long valueHash, long length) {
    count(key);
    keys += keyHash;
    values += (keyHash | 1) * valueHash;
    double weight = weight(place);
    columns = Math.max(columns, 1);
    if (value instanceof Tuple2 || value instanceof Tuple3) {
      addNumbers((Product) value, place, weight);
    }
    column(0, valueHash, value instanceof Number number ? number.doubleValue() : length, place, weight);
  }

  /** The parts of a tuple that are numbers or text, from the second column on. */
  private void addNumbers(Product tuple, long place, double weight) {
    columns = Math.max(columns, 1 + tuple.productArity());
    for (int i = 0; i < tuple.productArity(); i++) {
      Object part = tuple.productElement(i);
      if (part instanceof Number number) {
        double d = number.doubleValue();
        column(i + 1, mixed(Double.doubleToRawLongBits(d), i + 1), d, place, weight);
      } else if (part instanceof String text) {
        column(i + 1, Digest.spread(RecordHash.addText(i + 1, text)), text.length(), place, weight);
      }
    }
  }

  /** A row of SQL in bytes [from, to), whose columns end {@code fixedBytes} after its length. */
  void addRow(int partition, Object key, byte[] bytes, int from, int to, int fixedBytes) {
    count(key);
    long place = Digest.start(partition);
    int row = from + Integer.BYTES;
    int length = to - row;
    long hash = place;
    double weight = weight(place);
    columns = Math.min(COLUMNS_MAX, fixedBytes / Long.BYTES);
    for (int at = 0, j = 0; at < fixedBytes; at += Long.BYTES, j++) {
      long word = (long) WORDS.get(bytes, row + at);
      int offset = (int) (word >>> 32);
      int size = (int) word;
      long content;
      double number;
      if (offset >= fixedBytes && offset < length && size > 0 && size <= length - offset) { // points to bytes
        content = Digest.hash(bytes, row + offset, row + offset + size, j);
        number = size;
        hash = (hash ^ word) * ODD;
      } else {
        content = mixed(word, j);
        number = number(word);
      }
      hash = (hash ^ hash >>> 29 ^ content) * ODD;
      column(j & COLUMNS_MAX - 1, content, number, place, weight);
    }
    keys += place;
    values += Digest.spread(hash);
  }

  private static long mixed(long word, int column) {
    long mixed = (word ^ word >>> 32) * ODD + column;
    return (mixed ^ mixed >>> 29) * 0xbf58476d1ce4e5b9L;
  }

  /** A word as a number: a double if it looks like one, a whole number, or nothing. */
  private static double number(long word) {
    int exponent = (int) (word >>> 52) & 0x7ff;
    if (exponent >= DOUBLE_EXPONENT_MIN && exponent < DOUBLE_EXPONENT_MAX) {
      return Double.longBitsToDouble(word);
    }
    return word < WHOLE_MAX && word > -WHOLE_MAX ? word : 0;
  }

  private void count(Object key) {
    if (inSequence) {
      inSequence = (key instanceof Integer || key instanceof Long) && (records == 0 || ((Number) key).longValue() == lastKey + 1);
      lastKey = inSequence ? ((Number) key).longValue() : 0;
    }
    records++;
  }

  /** @param weight of the partition, at least 0 and less than 1 */
  private void column(int c, long content, double number, long place, double weight) {
    hashes[2 * c] += content;
    hashes[2 * c + 1] += content * (place | 1);
    numbers[3 * c] += number;
    numbers[3 * c + 1] += number * weight;
    numbers[3 * c + 2] += Math.abs(number);
  }

  private static double weight(long place) {
    return (place >>> 11) * 0x1p-53;
  }

  Digest digest(long rows) {
    List<Digest.Column> found = new ArrayList<>();
    for (int c = 0; c < columns; c++) {
      found.add(new Digest.Column(hashes[2 * c], hashes[2 * c + 1], numbers[3 * c], numbers[3 * c + 1], numbers[3 * c + 2]));
    }
    return new Digest(records, keys, values, rows, opaque || inSequence && records > 1, found);
  }
}
