package org.gristmill.core.home;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gristmill.core.format.Segment;
import org.gristmill.core.format.Segments;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileChainTest {
  private static final long BEYOND = Long.MAX_VALUE - 10; // no file system takes bytes there

  @TempDir
  Path folder;
  private final ByteBuffer piece = ByteBuffer.allocateDirect(1 << 10);
  private final byte[] before = Segments.segment(1, 0, 0, 0, 0, false, "before the disk was full");
  private final byte[] after = Segments.segment(1, 0, 0, 0, 1, true, "after it");

  private File file(int disk) {
    return folder.resolve("disk" + disk).toFile();
  }

  private static StoreLog.Batch batch(long position, byte[] segment) throws IOException {
    PartitionTail tail = new PartitionTail();
    tail.add(new PartitionTail.Received(segment, Segment.header(segment, 0, segment.length)));
    return new StoreLog.Batch(position, List.of(tail));
  }

  /**
   * With one of an executor's two local folders full, a job ended after four attempts, though the other one had room
   * for everything.
   */
  @Test
  void aFileThatCannotBeWrittenAnyMoreGoesOnOnTheNextDisk() throws Exception {
    List<IOException> told = new ArrayList<>();
    FileChain chain = new FileChain(disk -> {
      Thread.interrupted(); // so that the next file can be written
      return file(disk);
    }, 2, told::add);
    chain.write(batch(0, before), piece);
    Thread.currentThread().interrupt(); // a channel that an interrupted thread writes to fails
    chain.write(batch(before.length, after), piece);

    byte[] both = Arrays.copyOf(before, before.length + after.length);
    System.arraycopy(after, 0, both, before.length, after.length);
    byte[] read = new byte[both.length - 2];
    chain.read(1, read, 0, read.length);
    assertArrayEquals(Arrays.copyOfRange(both, 1, both.length - 1), read);
    assertEquals(new InFile(file(0), 5), chain.file(5, before.length - 5));
    assertEquals(new InFile(file(1), 0), chain.file(before.length, after.length));
    assertNull(chain.file(before.length - 1, 2), "bytes in two files");
    assertEquals(1, told.size());
    assertTrue(told.get(0).getMessage().contains(file(0) + " cannot be written"), told.get(0).getMessage());
    chain.close();
    assertEquals(0, folder.toFile().list().length);
  }

  @Test
  void whenNoDiskIsLeftTheErrorSaysWhichFileAndWhatToDo() throws Exception {
    FileChain chain = new FileChain(this::file, 1, cause -> {});
    chain.write(batch(0, before), piece);
    IOException e = assertThrows(IOException.class, () -> chain.write(batch(BEYOND, after), piece));
    assertTrue(e.getMessage().contains(file(0) + " cannot be written: ") && e.getMessage().contains("spark.local.dir"), e.getMessage());
    chain.close();
  }
}
