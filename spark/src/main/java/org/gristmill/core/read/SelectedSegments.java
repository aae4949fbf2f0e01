package org.gristmill.core.read;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;

/**
 * Walks over the segments that a reader takes from one partition. Neighbours in the file are read together, as a piece.
 *
 * <p>The end is where the last selected segment has been given, and nothing else: a walk that stops before is an
 * exception.
 *
 * <p>Segments of a piece come in the order of maps, not as they arrived: so a partition that is read in one piece comes
 * as a sort shuffle reads it where all is local. Spark promises no order, but programs that take the first or the last
 * of a few records expect one. Where a reader asks for it, several pieces are held in memory and put into that order.
 */
public final class SelectedSegments {
  private static final Comparator<Arrived> AS_WRITTEN = Comparator.<Arrived>comparingInt(a -> a.segment.mapIndex())
      .thenComparingInt(a -> a.segment.sequence());

  /**
   * How a reader takes a partition.
   *
   * @param readBytes of a piece, unless a segment alone is larger
   * @param aheadBytes under way from another executor while earlier ones are being used; one piece is always
   * @param orderBytes of pieces that are put into the order of maps together; one piece is always
   */
  public record Limits(int readBytes, long aheadBytes, long orderBytes) {}

  /** Neighbouring segments that are read together. */
  private record Range(long offset, int bytes, List<PartitionIndex.Entry> segments) {}

  /** A segment in the bytes of its piece. */
  private record Arrived(PartitionIndex.Entry segment, byte[] bytes, int at) {}

  private record Fetch(Range range, CompletableFuture<byte[]> bytes) {}

  private final PartitionSource source;
  private final FetchMetrics metrics;
  private final Iterator<Range> ranges;
  private final ArrayDeque<Fetch> underWay = new ArrayDeque<>();
  private final long aheadBytes;
  private final long orderBytes;
  private final int selected;
  private int given;
  private long underWayBytes;
  private Iterator<Arrived> arrived = Collections.emptyIterator();
  private Arrived now;
  private PartitionIndex.Entry segment;

  public SelectedSegments(PartitionSource source, List<PartitionIndex.Entry> segments, Limits limits, FetchMetrics metrics) {
    this.source = source;
    this.metrics = metrics;
    aheadBytes = source.local() ? 0 : limits.aheadBytes;
    orderBytes = limits.orderBytes;
    selected = segments.size();
    ranges = ranges(segments, limits.readBytes).iterator();
  }

  /** Asks another executor for the first pieces, so that they are under way before they are wanted. */
  public void start() {
    if (!source.local()) {
      ask();
    }
  }

  private void ask() {
    while (ranges.hasNext() && (underWay.isEmpty() || underWayBytes < aheadBytes)) {
      Range range = ranges.next();
      underWayBytes += range.bytes;
      underWay.add(new Fetch(range, source.read(range.offset, range.bytes)));
    }
  }

  /**
   * Goes to the next segment; false after the last. The segment is as it was written, or an exception says which is
   * not.
   */
  public boolean next() throws IOException {
    if (given == selected) {
      return false;
    }
    while (!arrived.hasNext()) {
      arrived = inOrder();
    }
    now = arrived.next();
    segment = now.segment;
    given++;
    check(now.bytes, now.at);
    return true;
  }

  /** Takes the next pieces, and gives their segments in the order of maps. */
  private Iterator<Arrived> inOrder() throws IOException {
    List<Arrived> segments = new ArrayList<>();
    long held = 0;
    do {
      ask();
      if (underWay.isEmpty()) {
        throw new IllegalStateException("partition " + source.partition() + " of shuffle " + source.shuffle() + " would end after "
            + given + " of " + selected + " segments: this is a fault in Gristmill, please report it");
      }
      Range range = underWay.element().range;
      byte[] bytes = arrive();
      held += range.bytes;
      range.segments.forEach(s -> segments.add(new Arrived(s, bytes, (int) (s.offset() - range.offset))));
      ask();
    } while (!underWay.isEmpty() && held + underWay.element().range.bytes <= orderBytes);
    segments.sort(AS_WRITTEN);
    return segments.iterator();
  }

  /** Throws if the present segment is not the one that the index names, with the bytes that were written. */
  private void check(byte[] bytes, int at) throws IOException {
    if (!Segment.intact(bytes, at, segment.bytes())) {
      throw new CorruptSegmentException(segment.mapIndex(), "does not have its checksum");
    }
    Segment.Header header = Segment.header(bytes, at, at + segment.bytes());
    if (header.shuffle() != source.shuffle() || header.partition() != source.partition() || header.mapIndex() != segment.mapIndex()
        || header.attempt() != segment.attempt() || header.sequence() != segment.sequence() || header.last() != segment.last()
        || header.records() != segment.records() || header.segmentBytes() != segment.bytes()) {
      throw new CorruptSegmentException(segment.mapIndex(), "is not the one that the index names: " + header + ", not " + segment);
    }
  }

  /** The present segment's body. */
  public ByteArrayInputStream body() {
    return new ByteArrayInputStream(now.bytes, now.at + Segment.HEADER_BYTES, bodyBytes());
  }

  public int bodyBytes() {
    return segment.bytes() - Segment.HEADER_BYTES;
  }

  /** Records in the present segment. */
  public int records() {
    return segment.records();
  }

  /** Waits for the first piece under way. */
  private byte[] arrive() throws IOException {
    long start = System.nanoTime();
    Fetch fetch = underWay.remove();
    underWayBytes -= fetch.range.bytes;
    byte[] bytes = source.await(fetch.bytes);
    if (bytes.length != fetch.range.bytes) {
      throw new IOException("asked for " + fetch.range.bytes + " bytes of a partition, got " + bytes.length);
    }
    if (source.local()) {
      metrics.fetchedHere(bytes.length);
    } else {
      metrics.waited((System.nanoTime() - start) / 1_000_000);
      metrics.fetchedElsewhere(bytes.length);
    }
    return bytes;
  }

  private static List<Range> ranges(List<PartitionIndex.Entry> segments, int readBytes) {
    List<Range> ranges = new ArrayList<>();
    List<PartitionIndex.Entry> together = new ArrayList<>();
    long start = 0;
    long end = 0;
    for (PartitionIndex.Entry e : segments) {
      if (!together.isEmpty() && (e.offset() != end || e.offset() + e.bytes() - start > readBytes)) {
        ranges.add(new Range(start, (int) (end - start), together));
        together = new ArrayList<>();
      }
      start = together.isEmpty() ? e.offset() : start;
      end = e.offset() + e.bytes();
      together.add(e);
    }
    if (!together.isEmpty()) {
      ranges.add(new Range(start, (int) (end - start), together));
    }
    return ranges;
  }

  /** A segment that is not the one that was written. */
  public static final class CorruptSegmentException extends IOException {
    private static final long serialVersionUID = 1L;
    private final int mapIndex;

    CorruptSegmentException(int mapIndex, String fault) {
      super("a segment of map " + mapIndex + " " + fault);
      this.mapIndex = mapIndex;
    }

    public int mapIndex() {
      return mapIndex;
    }
  }
}
