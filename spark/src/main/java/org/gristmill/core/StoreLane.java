package org.gristmill.core;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * One disk of a home. Received segments wait in memory in a tail per partition, and one thread appends tails to the shuffle's
 * {@link StoreFile}: so the disk sees appends of megabytes, never the small pieces that arrive, and never from a network
 * thread.
 *
 * <p>A tail is written when
 * <ol>
 * <li>it has grown to {@code appendBytes};
 * <li>tails use half of {@code tailBytesMax}: largest first (at all of it, {@link #receive} blocks);
 * <li>the disk has had nothing to do for a while: the largest, if it is not too small to be worth it;
 * <li>somebody wants an index of its shuffle, or will soon: then all tails of that shuffle, in partition order.
 * </ol>
 * If a write fails, the shuffle is marked failed here and its segments are dropped, now and later: readers find them missing
 * and tell the driver, which finds another home.
 */
final class StoreLane implements AutoCloseable {
  /** Chooses the file of a shuffle; may create folders. */
  interface FileChooser {
    File file(int shuffle) throws IOException;
  }

  /** Told once for each shuffle that this lane can no longer store. */
  interface FailureListener {
    void storeFailed(int shuffle, IOException cause);
  }

  private static final class Log {
    final TreeMap<Integer, Tail> tails = new TreeMap<>();
    StoreFile file;
    boolean failed;
    boolean removed;
    boolean writing;
    boolean sealing;
  }

  /** Tails taken out of memory to be written in one go. */
  private record Batch(int shuffle, Log log, List<Tail> tails) {}

  private static final int PIECE_BYTES = 1 << 18;
  private static final int IDLE_MS = 100;
  private static final int IDLE_PART = 8; // of appendBytes

  private final FileChooser files;
  private final FailureListener listener;
  private final int appendBytes;
  private final long tailBytesMax;
  private final Thread writer;
  private final Map<Integer, Log> logs = new HashMap<>();
  private final Set<Integer> removed = new HashSet<>();
  private long tailBytes;
  private long writtenAt = System.nanoTime();
  private boolean closed;

  StoreLane(String name, FileChooser files, FailureListener listener, int appendBytes, long tailBytesMax) {
    this.files = files;
    this.listener = listener;
    this.appendBytes = appendBytes;
    this.tailBytesMax = tailBytesMax;
    writer = new Thread(this::writeTails, "gristmill-store-" + name);
    writer.setDaemon(true);
    writer.start();
  }

  /** Takes segments of one shuffle; waits while tails use all the memory they may. */
  synchronized void receive(List<byte[]> segments, List<Segment.Header> headers) throws InterruptedException {
    int shuffle = headers.get(0).shuffle();
    while (tailBytes >= tailBytesMax && !closed) {
      wait();
    }
    if (closed || removed.contains(shuffle)) {
      return;
    }
    Log log = logs.computeIfAbsent(shuffle, k -> new Log());
    if (log.failed) {
      return;
    }
    for (int i = 0; i < headers.size(); i++) {
      Segment.Header header = headers.get(i);
      log.tails.computeIfAbsent(header.partition(), k -> new Tail()).add(segments.get(i), header);
      tailBytes += header.segmentBytes();
    }
    notifyAll();
  }

  /** The index of a partition, after everything received so far for its shuffle has been written. */
  PartitionIndex sealedIndex(int shuffle, int partition) throws IOException, InterruptedException {
    StoreFile file;
    synchronized (this) {
      Log log = logs.get(shuffle);
      if (log == null) {
        return new PartitionIndex(List.of());
      }
      while (!closed && !log.removed && (log.writing || !log.tails.isEmpty())) {
        log.sealing = true;
        notifyAll();
        wait();
      }
      file = log.file;
    }
    return file == null ? new PartitionIndex(List.of()) : file.index(partition);
  }

  /** Begins to write down everything received so far for a shuffle. */
  synchronized void seal(int shuffle) {
    Log log = logs.get(shuffle);
    if (log != null) {
      log.sealing = true;
      notifyAll();
    }
  }

  /** The file of a shuffle, for reading. */
  StoreFile file(int shuffle) throws IOException {
    synchronized (this) {
      Log log = logs.get(shuffle);
      if (log == null || log.file == null) {
        throw new IOException("nothing of shuffle " + shuffle + " is stored here");
      }
      return log.file;
    }
  }

  /** Deletes what is stored of a shuffle; what still arrives for it is dropped. */
  synchronized void remove(int shuffle) throws IOException {
    removed.add(shuffle);
    Log log = logs.remove(shuffle);
    if (log != null) {
      dropTails(log);
      log.removed = true;
      if (log.file != null && !log.writing) {
        log.file.close(); // else the writer closes it when it is done with its append
      }
      notifyAll();
    }
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    try {
      writer.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void writeTails() {
    ByteBuffer piece = ByteBuffer.allocateDirect(PIECE_BYTES);
    try {
      for (Batch batch = next(); batch != null; batch = next()) {
        IOException failure = null;
        try {
          if (batch.log.file == null) {
            StoreFile created = new StoreFile(files.file(batch.shuffle));
            synchronized (this) {
              batch.log.file = created;
            }
          }
          batch.log.file.append(batch.tails, piece);
        } catch (IOException e) {
          failure = e;
        }
        finish(batch, failure);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void finish(Batch batch, IOException failure) {
    boolean tell;
    synchronized (this) {
      Log log = batch.log;
      log.writing = false;
      writtenAt = System.nanoTime();
      tell = failure != null && !log.removed && !log.failed;
      if (tell) {
        log.failed = true;
        dropTails(log);
      }
      if (log.removed && log.file != null) {
        try {
          log.file.close();
        } catch (IOException e) {
          tell = false; // the shuffle is gone; a file that cannot be deleted goes with Spark's local folder
        }
      }
      notifyAll();
    }
    if (tell) {
      listener.storeFailed(batch.shuffle, failure);
    }
  }

  /** Waits for something to write and takes it; null when closed. */
  private synchronized Batch next() throws InterruptedException {
    while (!closed) {
      long idleMs = (System.nanoTime() - writtenAt) / 1_000_000;
      int worthBytes = idleMs < IDLE_MS ? appendBytes : appendBytes / IDLE_PART;
      for (Map.Entry<Integer, Log> e : logs.entrySet()) {
        Log log = e.getValue();
        if (log.tails.isEmpty()) {
          log.sealing = false;
        } else if (log.sealing) {
          return take(e.getKey(), log, inPartitionOrder(log));
        } else {
          int partition = largest(log);
          if (log.tails.get(partition).length() >= worthBytes || tailBytes > tailBytesMax / 2) {
            return take(e.getKey(), log, List.of(partition));
          }
        }
      }
      wait(tailBytes > 0 && idleMs < IDLE_MS ? IDLE_MS - idleMs : 0);
    }
    return null;
  }

  /** As many partitions from the front as make one append; at least one. */
  private List<Integer> inPartitionOrder(Log log) {
    List<Integer> chosen = new ArrayList<>();
    long bytes = 0;
    for (Map.Entry<Integer, Tail> e : log.tails.entrySet()) {
      bytes += e.getValue().length();
      if (!chosen.isEmpty() && bytes > 4L * appendBytes) {
        break;
      }
      chosen.add(e.getKey());
    }
    return chosen;
  }

  private static int largest(Log log) {
    return log.tails.entrySet().stream().max(Comparator.comparingInt(e -> e.getValue().length())).orElseThrow().getKey();
  }

  private Batch take(int shuffle, Log log, List<Integer> partitions) {
    List<Tail> tails = new ArrayList<>();
    for (int partition : partitions) {
      Tail tail = log.tails.remove(partition);
      tails.add(tail);
      tailBytes -= tail.length();
    }
    log.writing = true;
    return new Batch(shuffle, log, tails);
  }

  private void dropTails(Log log) {
    for (Tail tail : log.tails.values()) {
      tailBytes -= tail.length();
    }
    log.tails.clear();
  }
}
