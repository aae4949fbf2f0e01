package org.gristmill.spark.writer;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Segment;
import org.gristmill.spark.node.TaskMemory;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * A map task's records on their way into segments: one buffer of serialised bytes per partition. There is no sort and
 * no spill file; a buffer becomes a segment and goes to the executor's page pool when
 * <ol>
 * <li>it has reached {@code segmentBytes} and another record comes for it;
 * <li>the task's buffers together have reached {@code taskBytes}, or Spark grants no more memory: the larger half;
 * <li>the task ends: all, marked last.
 * </ol>
 * Serialisers whose records may be moved share one stream that writes into the buffer of the record at hand; others get
 * a stream per partition, closed with the segment.
 *
 * <p>Every record is counted and hashed, also those that are not to be emitted: so an attempt that writes only some
 * partitions can be compared with the one that wrote the others ({@link Digest}).
 */
public final class PartitionBuffers {
  private static final ClassTag<Object> ANY = ClassTag$.MODULE$.Any();
  /** A buffer for a start, and at least. */
  public static final int START_BYTES = 1 << 10;
  private static final int MEMORY_STEP = 1 << 20;

  /** Takes a finished segment. */
  public interface Sink {
    void add(int partition, byte[] segment) throws InterruptedException, IOException;
  }

  /** Passes the shared stream's bytes on to the buffer of the record that is being written. */
  private static final class CurrentBuffer extends OutputStream {
    GrowingBuffer target;

    @Override
    public void write(int b) {
      target.write(b);
    }

    @Override
    public void write(byte[] from, int offset, int count) {
      target.write(from, offset, count);
    }
  }

  private final int shuffle;
  private final int mapIndex;
  private final long attempt;
  private final int segmentBytes;
  private final int taskBytes;
  private final AtomicInteger usualBytes;
  private final int startBytes;
  private final SerializerInstance serializer;
  private final BodyWriter bodies;
  private final Sink sink;
  private final WriteMetrics metrics;
  private final TaskMemory memory;

  private final GrowingBuffer[] buffers;
  private final SerializationStream[] ownStreams;
  private final CurrentBuffer shared;
  private final SerializationStream sharedStream;
  private final int[] records;
  private final int[] sequence;
  private final long[] lengths;
  private final GrowingBuffer sealed = new GrowingBuffer(1 << 16);
  private final GrowingBuffer dropped = new GrowingBuffer(START_BYTES);
  private final DigestSums digest;
  private final boolean rows; // of SQL, without keys
  private int columnBytes = -1;
  private long capacity;
  private long peak;

  /**
   * @param usualBytes the size of a buffer when a task ends, as the last task of this shuffle had it; this task updates
   *     it
   */
  public PartitionBuffers(ShuffleDependency<?, ?, ?> dependency, SerializerInstance serializer, boolean relocatable,
      TaskContext context, TaskMemory.Lender memory, int segmentBytes, int taskBytes, AtomicInteger usualBytes, BodyWriter bodies,
      Sink sink, WriteMetrics metrics) {
    this.memory = memory.lend(this::spill);
    shuffle = dependency.shuffleId();
    mapIndex = context.partitionId();
    attempt = context.taskAttemptId();
    this.segmentBytes = segmentBytes;
    this.taskBytes = taskBytes;
    this.usualBytes = usualBytes;
    startBytes = usualBytes.get();
    this.bodies = bodies;
    this.sink = sink;
    this.metrics = metrics;
    this.serializer = serializer;
    digest = new DigestSums(dependency.partitioner());
    rows = serializer.getClass().getName().equals("org.apache.spark.sql.execution.UnsafeRowSerializerInstance");
    int partitions = dependency.partitioner().numPartitions();
    buffers = new GrowingBuffer[partitions];
    records = new int[partitions];
    sequence = new int[partitions];
    lengths = new long[partitions];
    if (relocatable) {
      shared = new CurrentBuffer();
      sharedStream = serializer.serializeStream(shared);
      ownStreams = null;
    } else {
      shared = null;
      sharedStream = null;
      ownStreams = new SerializationStream[partitions];
    }
  }

  /** Takes a record; {@code emitted} is false for a partition of which an earlier attempt's output stands. */
  void write(int partition, Object key, Object value, boolean emitted) throws IOException {
    if (shared == null) {
      digest.add(partition, key, value, serializer);
    } else if (!emitted) {
      dropped.restart(0);
      writeShared(dropped, partition, key, value);
    }
    if (emitted) {
      emit(partition, key, value);
    }
  }

  private void writeShared(GrowingBuffer target, int partition, Object key, Object value) {
    int start = target.length();
    shared.target = target;
    sharedStream.writeKey(key, ANY);
    if (rows) {
      if (columnBytes < 0) {
        columnBytes = SqlRows.columnBytes(value);
      }
      sharedStream.writeValue(value, ANY);
      sharedStream.flush();
      digest.addRow(partition, key, target.bytes(), start, target.length(), columnBytes);
    } else if (RecordHash.isNumber(key) && RecordHash.isNumber(value)) {
      sharedStream.writeValue(value, ANY);
      sharedStream.flush();
      digest.add(partition, key, value, serializer);
    } else {
      sharedStream.flush();
      int keyEnd = target.length();
      sharedStream.writeValue(value, ANY);
      sharedStream.flush();
      digest.add(partition, key, value, target.bytes(), start, keyEnd, target.length());
    }
  }

  private void emit(int partition, Object key, Object value) throws IOException {
    GrowingBuffer buffer = buffers[partition];
    if (buffer == null) {
      grew(startBytes); // first, because it may empty and drop buffers
      buffer = buffers[partition] = new GrowingBuffer(startBytes);
    } else if (buffer.length() >= segmentBytes) {
      emit(partition, false);
    }
    int before = buffer.capacity();
    if (shared != null) {
      writeShared(buffer, partition, key, value);
    } else {
      if (ownStreams[partition] == null) {
        ownStreams[partition] = serializer.serializeStream(buffer);
      }
      ownStreams[partition].writeKey(key, ANY);
      ownStreams[partition].writeValue(value, ANY);
    }
    records[partition]++;
    if (buffer.capacity() != before) {
      grew(buffer.capacity() - before);
    }
  }

  /** Emits what is left, each partition's last segment marked as such. */
  void finish() throws IOException {
    long left = 0;
    long leftBytes = 0;
    for (int p = 0; p < buffers.length; p++) {
      if (records[p] > 0 || sequence[p] > 0) {
        leftBytes += buffers[p] == null ? 0 : buffers[p].length();
        left++;
        emit(p, true);
      }
      buffers[p] = null;
    }
    if (left > 0) {
      usualBytes.set((int) Math.min(segmentBytes, Math.max(START_BYTES, leftBytes / left * 5 / 4)));
    }
    if (shared != null) {
      shared.target = new GrowingBuffer(0); // every record was flushed into its buffer; this returns the serialiser's own buffers
      sharedStream.close();
    }
    release();
  }

  /**
   * Bytes of each partition's records, serialised and compressed; without headers, so that SQL plans as with the sort
   * shuffle.
   */
  public long[] lengths() {
    return lengths;
  }

  /** The digest of all records, with Spark's own checksum of them. */
  Digest digest(long rows) {
    return digest.digest(rows);
  }

  long peakBytes() {
    return peak;
  }

  /** Gives all memory back and drops the content of the buffers. */
  public void release() {
    Arrays.fill(buffers, null);
    capacity = 0;
    memory.free(memory.used());
  }

  /** Called when another operator of this task needs memory: its records go to the page pool. */
  private long spill() throws IOException {
    long before = memory.used();
    shrink(0);
    memory.free(memory.used());
    return before;
  }

  private void grew(int bytes) throws IOException {
    capacity += bytes;
    peak = Math.max(peak, capacity);
    long missing = capacity - memory.used();
    boolean granted = missing <= 0 || memory.acquire(Math.max(missing, MEMORY_STEP)) >= missing;
    if (capacity >= taskBytes || !granted) {
      shrink(capacity / 2);
      long spare = memory.used() - capacity - MEMORY_STEP;
      if (spare > 0) {
        memory.free(spare);
      }
    }
  }

  /** Emits and frees buffers, the largest first, until they hold at most {@code bytesMax}. */
  private void shrink(long bytesMax) throws IOException {
    int[] largestFirst = IntStream.range(0, buffers.length).filter(p -> buffers[p] != null).boxed()
        .sorted(Comparator.comparingInt((Integer p) -> -buffers[p].capacity())).mapToInt(Integer::intValue).toArray();
    for (int p : largestFirst) {
      if (capacity <= bytesMax) {
        return;
      }
      if (records[p] > 0) {
        emit(p, false);
      }
      capacity -= buffers[p].capacity();
      buffers[p] = null;
    }
  }

  private void emit(int partition, boolean last) throws IOException {
    // 1. What the serialiser still holds goes into the buffer.
    if (ownStreams != null && ownStreams[partition] != null) {
      ownStreams[partition].close();
      ownStreams[partition] = null;
    }
    // 2. Compress, and encrypt if Spark is told to, after the room for the header. No records, no body.
    sealed.restart(Segment.HEADER_BYTES);
    GrowingBuffer buffer = buffers[partition];
    if (records[partition] > 0) {
      bodies.write(buffer, sealed);
      buffer.restart(0);
    }
    // 3. Head it and hand it over.
    Segment.seal(sealed.bytes(), sealed.length(), shuffle, partition, mapIndex, attempt, sequence[partition], last,
        records[partition]);
    byte[] segment = Arrays.copyOf(sealed.bytes(), sealed.length());
    metrics.bytesWritten(segment.length);
    metrics.recordsWritten(records[partition]);
    lengths[partition] += segment.length - Segment.HEADER_BYTES;
    sequence[partition]++;
    records[partition] = 0;
    long start = System.nanoTime();
    try {
      sink.add(partition, segment);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while waiting for a page", e);
    }
    metrics.waited(System.nanoTime() - start);
  }
}
