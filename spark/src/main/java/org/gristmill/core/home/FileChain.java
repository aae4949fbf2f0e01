package org.gristmill.core.home;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileSystemException;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Consumer;

/**
 * The written bytes of one shuffle on one disk of a home: a file there. When that can no longer be written, as on a
 * full disk, the bytes that follow go to a file on the next disk, and so on; what was written before is still read
 * where it is.
 *
 * <p>One thread writes; any thread reads.
 */
final class FileChain implements Closeable {
  /** Chooses the file on a disk; may create folders. Disk 0 is the one to begin with. */
  interface FileChooser {
    File file(int disk) throws IOException;
  }

  private final FileChooser chooser;
  private final int disks;
  private final Consumer<IOException> moved;
  private final ConcurrentSkipListMap<Long, StoreFile> files = new ConcurrentSkipListMap<>(); // by the position of their first byte
  private int disk;
  private boolean open; // the last file is on this disk

  /** @param moved told why the next disk is used from now on */
  FileChain(FileChooser chooser, int disks, Consumer<IOException> moved) {
    this.chooser = chooser;
    this.disks = disks;
    this.moved = moved;
  }

  /** @param piece a buffer outside of the heap, from which the kernel takes bytes without another copy */
  void write(StoreLog.Batch batch, ByteBuffer piece) throws IOException {
    while (true) {
      try {
        if (!open) {
          files.put(batch.position(), new StoreFile(chooser.file(disk)));
          open = true;
        }
        Map.Entry<Long, StoreFile> last = files.lastEntry();
        last.getValue().write(batch, batch.position() - last.getKey(), piece);
        return;
      } catch (IOException e) {
        IOException cause = new IOException((e instanceof FileSystemException ? e.toString() : e.getMessage())
            + "; free space there, or give Spark further local folders (spark.local.dir)", e);
        if (disk + 1 == disks) {
          throw cause;
        }
        forsake(batch.position());
        moved.accept(cause);
      }
    }
  }

  /** The next file will be on the next disk. This one goes if nothing before {@code position} is in it. */
  private void forsake(long position) {
    disk++;
    open = false;
    StoreFile empty = files.remove(position);
    if (empty != null) {
      try {
        empty.close();
      } catch (IOException e) {
        // What cannot be deleted there goes with Spark's local folder.
      }
    }
  }

  void read(long offset, byte[] into, int at, int length) throws IOException {
    for (int done = 0, count; done < length; done += count) {
      long from = offset + done;
      Map.Entry<Long, StoreFile> file = files.floorEntry(from);
      if (file == null) {
        throw new IOException("nothing is written at byte " + from);
      }
      Long next = files.higherKey(from);
      count = next == null ? length - done : (int) Math.min(length - done, next - from);
      file.getValue().read(from - file.getKey(), into, at + done, count);
    }
  }

  /** The file that has these bytes, which have been written; null if they are in several, or if it was deleted. */
  InFile file(long offset, int length) {
    Map.Entry<Long, StoreFile> file = files.floorEntry(offset);
    Long next = files.higherKey(offset);
    return file == null || next != null && next < offset + length || !file.getValue().file().exists()
        ? null
        : new InFile(file.getValue().file(), offset - file.getKey());
  }

  /** Closes and deletes. */
  @Override
  public void close() throws IOException {
    for (StoreFile file : files.values()) {
      file.close();
    }
  }
}
