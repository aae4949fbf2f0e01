package org.gristmill.core.home;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;
import org.gristmill.core.lifecycle.MonitoredThread;
import org.gristmill.core.lifecycle.RemovedShuffles;
import org.gristmill.core.lifecycle.UnavailableException;
import org.gristmill.core.plan.Settings;

/**
 * One disk of a home: a {@link StoreLog} and a {@link StoreFile} for each shuffle, and a limit for what all of them
 * hold in memory. While they hold more than half of it, one thread writes: so the disk sees writes of megabytes, never
 * the small pieces that arrive, and never from a network thread; above all of it, {@link #receive} waits. Data that
 * does not exceed half of it is never written.
 *
 * <p>If a write fails, with whatever exception or error, its shuffle fails here: its segments are dropped, now and
 * later, readers get the cause, and the listener is told, so that the driver finds another home. If the thread itself
 * ends, or nothing is written for {@code timeoutMs} while a thread waits, all shuffles fail in this way, and every
 * later one. So no thread waits for a thread that has ended.
 */
final class DiskStore implements AutoCloseable {
  private static final class Shuffle {
    final int id;
    final StoreLog log = new StoreLog();
    final FileChain file;
    IOException failure;
    boolean removed;
    boolean writing;

    Shuffle(int id, FileChain file) {
      this.id = id;
      this.file = file;
    }
  }

  private record WriteJob(Shuffle shuffle, StoreLog.Batch batch) {}

  private static final int PIECE_BYTES = 1 << 18;

  private final IntFunction<FileChain> files;
  private final PageStore.FailureListener listener;
  private final int appendBytes;
  private final long heldBytesMax;
  private final long timeoutMs;
  private final Thread writer;
  private final TreeMap<Integer, Shuffle> shuffles = new TreeMap<>();
  private final RemovedShuffles removed = new RemovedShuffles();
  private long heldBytes;
  private long batches; // that the writer has done
  private IOException broken;
  private boolean closed;

  /** @param files makes the file of a shuffle, which is created when it is first written */
  DiskStore(String name, IntFunction<FileChain> files, PageStore.FailureListener listener, int appendBytes, long heldBytesMax, long timeoutMs) {
    this.files = files;
    this.listener = listener;
    this.appendBytes = appendBytes;
    this.heldBytesMax = heldBytesMax;
    this.timeoutMs = timeoutMs;
    writer = new MonitoredThread("gristmill-store-" + name, this::write, this::broke);
    writer.start();
  }

  /** Takes segments of one shuffle; waits until all segments in memory fit into the limit. */
  void receive(List<PartitionTail.Received> segments) throws InterruptedException {
    List<Shuffle> failed = new ArrayList<>(0);
    synchronized (this) {
      if (closed) {
        return;
      }
      segments.forEach(segment -> add(segment, failed));
      if (pressed()) {
        notifyAll();
      }
      awaitRoom(failed);
    }
    tell(failed);
  }

  private void awaitRoom(List<Shuffle> failed) throws InterruptedException {
    long seen = batches;
    long since = System.nanoTime();
    while (heldBytes > heldBytesMax && !closed) {
      long waitedMs = (System.nanoTime() - since) / 1_000_000;
      if (batches != seen) {
        seen = batches;
        since = System.nanoTime();
      } else if (waitedMs >= timeoutMs) {
        breakDown(new UnavailableException(writer.getName() + " has written nothing for " + waitedMs + " ms: its disk does not answer ("
            + Settings.TIMEOUT.key() + ")"), failed);
      } else {
        wait(timeoutMs - waitedMs);
      }
    }
  }

  private void add(PartitionTail.Received segment, List<Shuffle> failed) {
    Segment.Header header = segment.header();
    removed.seen(header.attempt());
    if (removed.concerns(header.shuffle(), header.attempt())) {
      return;
    }
    Shuffle shuffle = shuffles.computeIfAbsent(header.shuffle(), id -> new Shuffle(id, files.apply(id)));
    if (broken != null) {
      fail(shuffle, broken, failed);
    }
    if (shuffle.failure == null) {
      shuffle.log.add(segment, appendBytes);
      heldBytes += segment.bytes().length;
    }
  }

  /** The segments received for a partition. */
  synchronized PartitionIndex index(int id, int partition) throws IOException {
    return shuffles.containsKey(id) ? stored(id).log.index(partition) : new PartitionIndex(List.of());
  }

  byte[] read(int id, long offset, int length) throws IOException {
    synchronized (this) {
      stored(id, offset, length); // first: the request may come from anywhere
    }
    byte[] bytes = new byte[length];
    for (int at = 0, count; at < length; at += count) {
      long from = offset + at;
      StoreLog.Piece piece;
      FileChain file;
      synchronized (this) {
        Shuffle shuffle = stored(id);
        piece = shuffle.log.at(from);
        file = shuffle.file;
      }
      count = (int) Math.min(length - at, piece.end() - from);
      if (piece.tail() != null) {
        piece.tail().copy(from - piece.start(), bytes, at, count);
      } else {
        file.read(from, bytes, at, count);
      }
    }
    return bytes;
  }

  /** The file that has these bytes; null while some are in memory, and if they are in several files. */
  synchronized InFile file(int id, long offset, int length) throws IOException {
    Shuffle shuffle = stored(id, offset, length);
    StoreLog.Piece piece = shuffle.log.at(offset);
    return piece.tail() == null && piece.end() >= offset + length ? shuffle.file.file(offset, length) : null;
  }

  /** The largest segment of a shuffle here. */
  synchronized int largestSegment(int id) throws IOException {
    return stored(id).log.largestBytes();
  }

  private Shuffle stored(int id, long offset, int length) throws IOException {
    Shuffle shuffle = stored(id);
    if (!shuffle.log.has(offset, length)) {
      throw new IOException("of shuffle " + id + " there are no " + length + " bytes at byte " + offset + " here");
    }
    return shuffle;
  }

  private Shuffle stored(int id) throws IOException {
    Shuffle shuffle = shuffles.get(id);
    if (shuffle == null) {
      throw new IOException("nothing of shuffle " + id + " is stored here");
    }
    if (shuffle.failure != null) {
      throw new IOException("shuffle " + id + " cannot be stored here: " + shuffle.failure.getMessage(), shuffle.failure);
    }
    return shuffle;
  }

  /** Deletes a shuffle. Segments that its attempts still send are dropped. */
  synchronized void remove(int id) throws IOException {
    removed.remove(id);
    Shuffle shuffle = shuffles.remove(id);
    if (shuffle != null) {
      drop(shuffle);
      shuffle.removed = true;
      notifyAll();
      if (!shuffle.writing) {
        shuffle.file.close(); // else the writer closes it when it is done; it comes again under the same name
      }
    }
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    try {
      writer.join(timeoutMs); // a disk that does not answer is left to itself
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void write() throws InterruptedException {
    ByteBuffer piece = ByteBuffer.allocateDirect(PIECE_BYTES);
    for (WriteJob job = next(); job != null; job = next()) {
      IOException failure = null;
      Shuffle shuffle = job.shuffle;
      try {
        shuffle.file.write(job.batch, piece);
      } catch (IOException e) {
        failure = e;
      } catch (Throwable e) {
        failure = new UnavailableException("the thread " + writer.getName() + " failed: " + e, e);
      }
      List<Shuffle> failed = new ArrayList<>(0);
      boolean removed = finish(job, failure, failed);
      if (removed) {
        try {
          shuffle.file.close();
        } catch (IOException e) {
          // The shuffle is gone; a file that cannot be deleted goes with Spark's local folder.
        }
      }
      tell(failed);
    }
  }

  /** Waits for something to write; null when closed. */
  private synchronized WriteJob next() throws InterruptedException {
    while (!closed && broken == null) {
      if (pressed()) {
        Shuffle shuffle = shuffles.values().stream().filter(s -> s.log.hasPlaced()).findFirst()
            .orElseGet(() -> shuffles.values().stream().max(Comparator.comparingLong(s -> s.log.growingBytes())).orElseThrow());
        shuffle.writing = true;
        return new WriteJob(shuffle, shuffle.log.next(appendBytes));
      }
      wait();
    }
    return null;
  }

  /** True if the shuffle was removed meanwhile, and left its file to the writer. */
  private synchronized boolean finish(WriteJob job, IOException failure, List<Shuffle> failed) {
    Shuffle shuffle = job.shuffle;
    shuffle.writing = false;
    batches++;
    notifyAll();
    if (shuffle.removed) {
      return true;
    }
    if (failure != null) {
      fail(shuffle, failure, failed);
    } else if (shuffle.failure == null) {
      heldBytes -= job.batch.bytes();
      shuffle.log.written(job.batch);
    }
    return false;
  }

  /** The writer will do nothing any more, or does nothing that anybody could wait for. */
  private void broke(IOException cause) {
    List<Shuffle> failed = new ArrayList<>();
    synchronized (this) {
      breakDown(cause, failed);
    }
    tell(failed);
  }

  private void breakDown(IOException cause, List<Shuffle> failed) {
    if (broken == null) {
      broken = cause;
      shuffles.values().forEach(shuffle -> fail(shuffle, cause, failed));
      notifyAll();
    }
  }

  /** @param failed gets what {@link #tell} is to be told of, once the lock is free */
  private void fail(Shuffle shuffle, IOException cause, List<Shuffle> failed) {
    if (shuffle.failure == null) {
      shuffle.failure = cause;
      drop(shuffle);
      failed.add(shuffle);
    }
  }

  private void tell(List<Shuffle> failed) {
    failed.forEach(shuffle -> listener.failed(shuffle.id, shuffle.failure));
  }

  private boolean pressed() {
    return heldBytes > heldBytesMax / 2;
  }

  private void drop(Shuffle shuffle) {
    heldBytes -= shuffle.log.heldBytes();
    shuffle.log.drop();
  }
}
