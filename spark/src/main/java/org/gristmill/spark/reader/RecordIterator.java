package org.gristmill.spark.reader;

import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.ArrayDeque;
import java.util.Enumeration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.UnaryOperator;
import org.apache.spark.serializer.SerializerInstance;
import org.gristmill.core.read.SelectedSegments;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * The records of a reduce task's partitions. Segments are deserialised one after the other; where serialiser and codec
 * allow it, all segments of a partition as one stream, which saves setting up a decompressor for each.
 *
 * <p>A task of adaptive execution reads many small partitions, which lie on many executors: some are opened ahead, so
 * that these executors and their disks work side by side.
 *
 * <p>The records are counted. If a partition ends with more or fewer than its segments hold, by their headers and by
 * the index, the task fails with a fetch failure.
 */
public final class RecordIterator extends AbstractIterator<Tuple2<Object, Object>> {
  /** Partitions that are open at a time. */
  public static final int OPENED_MAX = 4; // the one that is read and three ahead

  private final PartitionOpener opener;
  private final SerializerInstance serializer;
  private final UnaryOperator<InputStream> unwrap;
  private final boolean joined;
  private final ReadMetrics metrics;
  private final Runnable endIfKilled;
  private final Iterator<Integer> partitions;
  private final ArrayDeque<Opened> ahead = new ArrayDeque<>();
  private int partition;
  private SelectedSegments segments;
  private scala.collection.Iterator<Tuple2<Object, Object>> records;
  private long came; // records of the present partition
  private long written; // records in its segments so far, by the index
  private boolean ended;

  private record Opened(int partition, SelectedSegments segments) {}

  /**
   * @param unwrap decrypts and decompresses bodies
   * @param joined whether the bodies of segments can be read as one stream
   * @param endIfKilled throws if the task was killed
   */
  public RecordIterator(PartitionOpener opener, SerializerInstance serializer, UnaryOperator<InputStream> unwrap, boolean joined,
      ReadMetrics metrics, Runnable endIfKilled) {
    this.opener = opener;
    this.serializer = serializer;
    this.unwrap = unwrap;
    this.joined = joined;
    this.metrics = metrics;
    this.endIfKilled = endIfKilled;
    partitions = opener.partitions().iterator();
  }

  @Override
  public boolean hasNext() {
    while (!ended && (records == null || !records.hasNext())) {
      records = null;
      InputStream body = nextBody();
      if (body != null) {
        records = serializer.deserializeStream(unwrap.apply(body)).asKeyValueIterator();
      }
    }
    return !ended;
  }

  @Override
  public Tuple2<Object, Object> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("no record after the last");
    }
    metrics.recordRead();
    came++;
    return records.next();
  }

  /**
   * The next segment, or the next partition's segments joined; null after moving to another partition or at the end.
   */
  private InputStream nextBody() {
    if (segments == null) {
      while (ahead.size() < OPENED_MAX && partitions.hasNext()) {
        int next = partitions.next();
        SelectedSegments opened = opener.open(next);
        opened.start();
        ahead.add(new Opened(next, opened));
      }
      if (ahead.isEmpty()) {
        ended = true;
        metrics.finished();
        return null;
      }
      Opened next = ahead.remove();
      partition = next.partition;
      segments = next.segments;
      came = 0;
      written = 0;
    }
    do {
      if (!advance()) {
        if (came != written) {
          throw opener.miscounted(partition, came, written);
        }
        segments = null;
        return null;
      }
    } while (segments.bodyBytes() == 0);
    return joined ? new SequenceInputStream(new Bodies()) : segments.body();
  }

  private boolean advance() {
    try {
      boolean found = segments.next();
      written += found ? segments.records() : 0;
      return found;
    } catch (IOException e) {
      endIfKilled.run();
      throw opener.failed(partition, e);
    }
  }

  /** The body of the present segment, and those of all that follow it in the partition. */
  private final class Bodies implements Enumeration<InputStream> {
    private boolean begun;

    @Override
    public boolean hasMoreElements() {
      return !begun || advance();
    }

    @Override
    public InputStream nextElement() {
      begun = true;
      return segments.body();
    }
  }
}
