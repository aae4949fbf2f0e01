package org.gristmill.core;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * One disk of a home: a {@link StoreLog} and a {@link StoreFile} for each shuffle, and a limit for what all of them hold in memory. While
 * they hold more than half of it, one thread writes: so the disk sees writes of megabytes, never the small pieces that arrive, and
 * never from a network thread; above all of it, {@link #receive} waits. What does not exceed half of it is never written.
 *
 * <p>If a write fails, the shuffle is marked failed here and its segments are dropped, now and later: readers find them missing
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

  private static final class Shuffle {
    final int id;
    final StoreLog log = new StoreLog();
    StoreFile file;
    boolean failed;
    boolean removed;
    boolean writing;

    Shuffle(int id) {
      this.id = id;
    }
  }

  private record Work(Shuffle shuffle, StoreLog.Batch batch) {}

  private static final int PIECE_BYTES = 1 << 18;

  private final FileChooser files;
  private final FailureListener listener;
  private final int appendBytes;
  private final long heldBytesMax;
  private final Thread writer;
  private final TreeMap<Integer, Shuffle> shuffles = new TreeMap<>();
  private final Removed removed = new Removed();
  private long heldBytes;
  private boolean closed;

  StoreLane(String name, FileChooser files, FailureListener listener, int appendBytes, long heldBytesMax) {
    this.files = files;
    this.listener = listener;
    this.appendBytes = appendBytes;
    this.heldBytesMax = heldBytesMax;
    writer = new Thread(this::write, "gristmill-store-" + name);
    writer.setDaemon(true);
    writer.start();
  }

  /** Takes segments of one shuffle; waits until what is held fits into the memory. */
  synchronized void receive(List<byte[]> segments, List<Segment.Header> headers) throws InterruptedException {
    if (closed) {
      return;
    }
    for (int i = 0; i < headers.size(); i++) {
      add(segments.get(i), headers.get(i));
    }
    if (pressed()) {
      notifyAll();
    }
    while (heldBytes > heldBytesMax && !closed) {
      wait();
    }
  }

  private void add(byte[] segment, Segment.Header header) {
    removed.seen(header.attempt());
    if (removed.concerns(header.shuffle(), header.attempt())) {
      return;
    }
    Shuffle shuffle = shuffles.computeIfAbsent(header.shuffle(), Shuffle::new);
    if (!shuffle.failed) {
      shuffle.log.add(segment, header, appendBytes);
      heldBytes += segment.length;
    }
  }

  /** What has been received for a partition. */
  synchronized PartitionIndex index(int id, int partition) {
    Shuffle shuffle = shuffles.get(id);
    return shuffle == null ? new PartitionIndex(List.of()) : shuffle.log.index(partition);
  }

  byte[] read(int id, long offset, int length) throws IOException {
    byte[] bytes = new byte[length];
    for (int at = 0, count; at < length; at += count) {
      long from = offset + at;
      StoreLog.Piece piece;
      StoreFile file;
      synchronized (this) {
        Shuffle shuffle = stored(id);
        piece = shuffle.log.at(from);
        file = shuffle.file;
      }
      count = (int) Math.min(length - at, piece.end() - from);
      if (piece.tail() != null) {
        piece.tail().copy((int) (from - piece.start()), bytes, at, count);
      } else if (file != null) {
        file.read(from, bytes, at, count);
      } else {
        throw new IOException("shuffle " + id + " has nothing at byte " + from + " here");
      }
    }
    return bytes;
  }

  /** The file of a shuffle, if these bytes are in it; null while some are in memory. */
  synchronized File file(int id, long offset, int length) throws IOException {
    Shuffle shuffle = stored(id);
    StoreLog.Piece piece = shuffle.log.at(offset);
    return piece.tail() == null && piece.end() >= offset + length && shuffle.file != null ? shuffle.file.file() : null;
  }

  private Shuffle stored(int id) throws IOException {
    Shuffle shuffle = shuffles.get(id);
    if (shuffle == null || shuffle.failed) {
      throw new IOException("nothing of shuffle " + id + " is stored here");
    }
    return shuffle;
  }

  /** Deletes what is stored of a shuffle; what its attempts still send is dropped. */
  synchronized void remove(int id) throws IOException {
    removed.remove(id);
    Shuffle shuffle = shuffles.remove(id);
    if (shuffle != null) {
      drop(shuffle);
      shuffle.removed = true;
      if (shuffle.file != null && !shuffle.writing) {
        shuffle.file.close(); // else the writer closes it when it is done
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

  private void write() {
    ByteBuffer piece = ByteBuffer.allocateDirect(PIECE_BYTES);
    try {
      for (Work work = next(); work != null; work = next()) {
        IOException failure = null;
        Shuffle shuffle = work.shuffle;
        try {
          if (shuffle.file == null) {
            StoreFile created = new StoreFile(files.file(shuffle.id));
            synchronized (this) {
              shuffle.file = created;
            }
          }
          shuffle.file.write(work.batch, piece);
        } catch (IOException e) {
          failure = e;
        }
        finish(work, failure);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for something to write; null when closed. */
  private synchronized Work next() throws InterruptedException {
    while (!closed) {
      if (pressed()) {
        Shuffle shuffle = shuffles.values().stream().filter(s -> s.log.hasPlaced()).findFirst().orElseGet(() ->
            shuffles.values().stream().max(Comparator.comparingLong(s -> s.log.growingBytes())).orElseThrow());
        shuffle.writing = true;
        return new Work(shuffle, shuffle.log.next(appendBytes));
      }
      wait();
    }
    return null;
  }

  private void finish(Work work, IOException failure) {
    Shuffle shuffle = work.shuffle;
    boolean tell;
    synchronized (this) {
      shuffle.writing = false;
      tell = failure != null && !shuffle.removed;
      if (tell) {
        shuffle.failed = true;
        drop(shuffle);
      } else if (!shuffle.removed) {
        heldBytes -= work.batch.bytes();
        shuffle.log.written(work.batch);
      } else if (shuffle.file != null) {
        try {
          shuffle.file.close();
        } catch (IOException e) {
          // The shuffle is gone; a file that cannot be deleted goes with Spark's local folder.
        }
      }
      notifyAll();
    }
    if (tell) {
      listener.storeFailed(shuffle.id, failure);
    }
  }

  private boolean pressed() {
    return heldBytes > heldBytesMax / 2;
  }

  private void drop(Shuffle shuffle) {
    heldBytes -= shuffle.log.heldBytes();
    shuffle.log.drop();
  }
}
