package org.gristmill.core.home;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;

/**
 * What one disk of a home has of one shuffle. A segment joins its partition's tail, which grows in memory; the tail
 * gets a place in the file, and with it its segments enter the index; the tail is written there, and leaves memory.
 * Only the first step is sure to happen: what fits into memory can be read without having been written.
 *
 * <p>Not thread safe; {@link DiskStore} guards it. A tail that has a place does not change any more.
 */
final class StoreLog {
  /** Tails with neighbouring places, the first of them at {@code position}. */
  record Batch(long position, List<PartitionTail> tails) {
    long bytes() {
      return tails.stream().mapToLong(PartitionTail::length).sum();
    }
  }

  /**
   * Where bytes from some offset on lie, up to {@code end}: in a tail that begins at {@code start}, or in the file
   * (null).
   */
  record Piece(PartitionTail tail, long start, long end) {}

  private final Map<Integer, PartitionTail> growing = new HashMap<>();
  private final TreeMap<Long, PartitionTail> placed = new TreeMap<>();
  private final Map<Integer, List<PartitionIndex.Entry>> index = new HashMap<>();
  private long growingBytes;
  private long placedBytes;
  private long end;
  private int largestBytes;

  /** @param placeBytes size at which a tail gets its place */
  void add(PartitionTail.Received segment, int placeBytes) {
    int partition = segment.header().partition();
    PartitionTail tail = growing.computeIfAbsent(partition, k -> new PartitionTail());
    tail.add(segment);
    growingBytes += segment.bytes().length;
    largestBytes = Math.max(largestBytes, segment.bytes().length);
    if (tail.length() >= placeBytes) {
      place(partition);
    }
  }

  /** All segments of a partition. */
  PartitionIndex index(int partition) {
    if (growing.containsKey(partition)) {
      place(partition);
    }
    return new PartitionIndex(List.copyOf(index.getOrDefault(partition, List.of())));
  }

  private void place(int partition) {
    PartitionTail tail = growing.remove(partition);
    growingBytes -= tail.length();
    placed.put(end, tail);
    placedBytes += tail.length();
    List<PartitionIndex.Entry> entries = index.computeIfAbsent(partition, k -> new ArrayList<>());
    for (PartitionTail.Received segment : tail.segments()) {
      Segment.Header h = segment.header();
      entries.add(new PartitionIndex.Entry(h.mapIndex(), h.attempt(), h.sequence(), h.last(), h.records(), end, h.segmentBytes()));
      end += h.segmentBytes();
    }
  }

  /** The largest segment so far. */
  int largestBytes() {
    return largestBytes;
  }

  /** Whether all of these bytes have been placed. */
  boolean has(long offset, int length) {
    return offset >= 0 && length >= 0 && offset <= end - length;
  }

  Piece at(long offset) {
    Map.Entry<Long, PartitionTail> before = placed.floorEntry(offset);
    if (before != null && offset < before.getKey() + before.getValue().length()) {
      return new Piece(before.getValue(), before.getKey(), before.getKey() + before.getValue().length());
    }
    Long next = placed.higherKey(offset);
    return new Piece(null, 0, next == null ? Long.MAX_VALUE : next);
  }

  /** Bytes in memory. */
  long heldBytes() {
    return growingBytes + placedBytes;
  }

  boolean hasPlaced() {
    return !placed.isEmpty();
  }

  long growingBytes() {
    return growingBytes;
  }

  /**
   * What to write next, about {@code bytes} of it: tails in the order of their places; if none has one, the largest get
   * theirs.
   */
  Batch next(long bytes) {
    if (placed.isEmpty()) {
      long chosen = 0;
      for (int partition : largestFirst()) {
        chosen += growing.get(partition).length();
        place(partition);
        if (chosen >= bytes) {
          break;
        }
      }
    }
    List<PartitionTail> tails = new ArrayList<>();
    long sum = 0;
    for (PartitionTail tail : placed.values()) {
      tails.add(tail);
      sum += tail.length();
      if (sum >= bytes) {
        break;
      }
    }
    return new Batch(placed.firstKey(), tails);
  }

  private List<Integer> largestFirst() {
    return growing.entrySet().stream().sorted(Comparator.comparingLong(e -> -e.getValue().length())).map(Map.Entry::getKey).toList();
  }

  /** A batch is in the file now. */
  void written(Batch batch) {
    for (PartitionTail tail : batch.tails) {
      placed.pollFirstEntry();
      placedBytes -= tail.length();
    }
  }

  /** Forgets everything. */
  void drop() {
    growing.clear();
    placed.clear();
    index.clear();
    growingBytes = 0;
    placedBytes = 0;
  }
}
