package org.gristmill.core.home;

import java.io.Closeable;
import java.io.EOFException;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * A file with bytes of one shuffle on a disk of a home. One thread writes; any thread reads; no other user of the
 * machine does. Its bytes can be read here until it is closed, even if it is deleted before, as by a cleaner of
 * temporary folders.
 */
final class StoreFile implements Closeable {
  private final File file;
  private final FileChannel channel;
  private final RandomAccessFile kept;

  StoreFile(File file) throws IOException {
    this.file = file;
    channel = FileChannel.open(file.toPath(), Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), ownerOnly(file.toPath()));
    try {
      kept = new RandomAccessFile(file, "r");
    } catch (IOException e) {
      channel.close();
      Files.deleteIfExists(file.toPath());
      throw e;
    }
  }

  private static FileAttribute<?>[] ownerOnly(Path path) {
    return path.getFileSystem().supportedFileAttributeViews().contains("posix")
        ? new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))}
        : new FileAttribute<?>[0];
  }

  /**
   * @param position of the batch in this file
   * @param piece a buffer outside of the heap, from which the kernel takes bytes without another copy
   */
  void write(StoreLog.Batch batch, long position, ByteBuffer piece) throws IOException {
    try {
      channel.position(position);
      writeAll(batch, piece);
    } catch (IOException e) {
      throw new IOException(file + " cannot be written: " + e.getMessage(), e);
    }
  }

  private void writeAll(StoreLog.Batch batch, ByteBuffer piece) throws IOException {
    piece.clear();
    for (PartitionTail tail : batch.tails()) {
      for (PartitionTail.Received segment : tail.segments()) {
        byte[] bytes = segment.bytes();
        for (int at = 0; at < bytes.length;) {
          int count = Math.min(bytes.length - at, piece.remaining());
          piece.put(bytes, at, count);
          at += count;
          if (!piece.hasRemaining()) {
            write(piece);
          }
        }
      }
    }
    write(piece);
  }

  private void write(ByteBuffer piece) throws IOException {
    piece.flip();
    while (piece.hasRemaining()) {
      channel.write(piece);
    }
    piece.clear();
  }

  /**
   * Not through the channel: that would close for everybody if a thread that reads is interrupted, as killed tasks are.
   */
  void read(long offset, byte[] into, int at, int length) throws IOException {
    try (RandomAccessFile in = new RandomAccessFile(file, "r")) {
      read(in, offset, into, at, length);
    } catch (FileNotFoundException e) { // no longer under its name
      synchronized (kept) {
        read(kept, offset, into, at, length);
      }
    }
  }

  private void read(RandomAccessFile in, long offset, byte[] into, int at, int length) throws IOException {
    try {
      in.seek(offset);
      in.readFully(into, at, length);
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
    kept.close();
    Files.deleteIfExists(file.toPath());
  }
}
