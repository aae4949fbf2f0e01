package org.gristmill.core;

import java.io.Closeable;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The file of one shuffle on one disk of a home, append only, with the index of what it holds for each partition. One thread
 * appends; any thread reads. A segment enters the index after its bytes are in the file.
 */
final class StoreFile implements Closeable {
  private final File file;
  private final FileChannel channel;
  private final Map<Integer, List<PartitionIndex.Entry>> index = new HashMap<>();
  private long position;

  StoreFile(File file) throws IOException {
    this.file = file;
    channel = FileChannel.open(file.toPath(), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  /**
   * Appends tails. After an error the file is as before as far as any reader can see.
   *
   * @param piece what is written at a time; outside of the heap, from where the kernel takes it without another copy
   */
  void append(List<Tail> tails, ByteBuffer piece) throws IOException {
    channel.position(position);
    piece.clear();
    for (Tail tail : tails) {
      for (byte[] segment : tail.segments()) {
        for (int at = 0; at < segment.length;) {
          int count = Math.min(segment.length - at, piece.remaining());
          piece.put(segment, at, count);
          at += count;
          if (!piece.hasRemaining()) {
            write(piece);
          }
        }
      }
    }
    write(piece);
    synchronized (index) {
      for (Tail tail : tails) {
        for (Segment.Header h : tail.headers()) {
          index.computeIfAbsent(h.partition(), k -> new ArrayList<>()).add(new PartitionIndex.Entry(h.mapIndex(),
              h.attempt(), h.sequence(), h.last(), h.records(), position, h.segmentBytes()));
          position += h.segmentBytes();
        }
      }
    }
  }

  private void write(ByteBuffer piece) throws IOException {
    piece.flip();
    while (piece.hasRemaining()) {
      channel.write(piece);
    }
    piece.clear();
  }

  PartitionIndex index(int partition) {
    synchronized (index) {
      return new PartitionIndex(List.copyOf(index.getOrDefault(partition, List.of())));
    }
  }

  /** Not through the channel: that would close for everybody if a thread that reads is interrupted, as killed tasks are. */
  void read(long offset, byte[] into, int length) throws IOException {
    try (RandomAccessFile in = new RandomAccessFile(file, "r")) {
      in.seek(offset);
      in.readFully(into, 0, length);
    } catch (EOFException e) {
      throw new EOFException(file + " ends before byte " + (offset + length));
    }
  }

  File file() {
    return file;
  }

  /** Closes and deletes. */
  @Override
  public void close() throws IOException {
    channel.close();
    Files.deleteIfExists(file.toPath());
  }
}
