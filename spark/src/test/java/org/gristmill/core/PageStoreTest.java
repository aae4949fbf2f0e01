package org.gristmill.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class PageStoreTest {
  @TempDir Path folder;
  private final List<Integer> failed = Collections.synchronizedList(new ArrayList<>());
  private PageStore store;

  private PageStore open(PageStore.FileChooser files, int appendBytes, long waiting) {
    store = new PageStore(2, files, (shuffle, cause) -> failed.add(shuffle), appendBytes, waiting);
    return store;
  }

  private File file(int disk, int shuffle) {
    return folder.resolve(disk + "-" + shuffle).toFile();
  }

  @AfterEach
  void close() {
    store.close();
  }

  @Test
  void whatWasReceivedIsReadBackByTheIndex() throws Exception {
    open(this::file, 1000, 1 << 20);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, false, "first");
    byte[] b = Segments.segment(1, 1, 0, 0, 0, true, "other partition");
    byte[] c = Segments.segment(1, 0, 0, 0, 1, true, "second");
    store.receive(List.of(a, b));
    store.receive(List.of(c));
    List<PartitionIndex.Entry> entries = store.index(1, 0).entries();
    assertEquals(2, entries.size());
    byte[] read = new byte[entries.get(1).bytes()];
    store.read(1, 0, entries.get(1).offset(), read, read.length);
    assertArrayEquals(c, read);
    assertEquals(1, store.index(1, 1).entries().size());
    assertEquals(List.of(), store.index(1, 2).entries());
    assertEquals(List.of(), store.index(99, 0).entries());
  }

  /** Spark interrupts the threads of tasks that it kills; a channel that one of them reads through would close for all. */
  @Test
  void aReaderThatIsInterruptedLeavesTheFileToTheOthers() throws Exception {
    open(this::file, 10, 1 << 20);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, true, "before");
    byte[] b = Segments.segment(1, 0, 1, 1, 0, true, "after");
    store.receive(List.of(a));
    assertEquals(1, store.index(1, 0).entries().size());
    Thread.currentThread().interrupt();
    byte[] read = new byte[a.length];
    store.read(1, 0, 0, read, a.length);
    assertArrayEquals(a, read);
    assertTrue(Thread.interrupted());
    store.receive(List.of(b));
    assertEquals(2, store.index(1, 0).entries().size());
    assertEquals(List.of(), failed);
  }

  @Test
  void partitionsLieTogetherThoughTheyArriveMixed() throws Exception {
    open(this::file, 100_000, 1 << 20);
    for (int i = 0; i < 50; i++) {
      store.receive(List.of(Segments.segment(1, 0, i, i, 0, true, "zero"), Segments.segment(1, 2, i, i, 0, true, "two")));
    }
    long at = store.index(1, 0).entries().get(0).offset();
    for (PartitionIndex.Entry e : store.index(1, 0).entries()) {
      assertEquals(at, e.offset());
      at += e.bytes();
    }
  }

  @Test
  void aDiskWithNothingToDoGetsWhatWaitsIfItIsWorthIt() throws Exception {
    open(this::file, 1 << 10, 1 << 20);
    byte[] worth = Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(200));
    store.receive(List.of(worth, Segments.segment(1, 2, 0, 0, 0, true, "y")));
    awaitBytes(worth.length);
    byte[] another = Segments.segment(1, 0, 1, 1, 0, true, "z".repeat(100));
    store.receive(List.of(another));
    awaitBytes(worth.length + another.length);
  }

  @Test
  void whatIsAnnouncedIsWrittenBeforeAnybodyAsks() throws Exception {
    open(this::file, 1 << 20, 1 << 20);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, true, "a");
    byte[] b = Segments.segment(1, 2, 0, 0, 0, true, "b");
    store.receive(List.of(a, b));
    store.seal(99);
    store.seal(1);
    awaitBytes(a.length + b.length);
    assertEquals(1, store.index(1, 2).entries().size());
  }

  private void awaitBytes(long bytes) throws InterruptedException {
    while (file(0, 1).length() < bytes) {
      Thread.sleep(1);
    }
    assertEquals(bytes, file(0, 1).length());
  }

  @Test
  void moreThanTheMemoryPassesThrough() throws Exception {
    open(this::file, 500, 2000);
    for (int i = 0; i < 200; i++) {
      store.receive(List.of(Segments.segment(1, i % 7, i, i, 0, true, "x".repeat(300))));
    }
    int found = 0;
    for (int p = 0; p < 7; p++) {
      found += store.index(1, p).entries().size();
    }
    assertEquals(200, found);
  }

  @Test
  void aFolderThatCannotBeWrittenIsReportedOnceAndNothingIsIndexed() throws Exception {
    open((disk, shuffle) -> new File("/nonexistent/folder/" + shuffle), 10, 1 << 20);
    store.receive(List.of(Segments.segment(5, 0, 0, 0, 0, true, "lost")));
    assertEquals(List.of(), store.index(5, 0).entries());
    store.receive(List.of(Segments.segment(5, 0, 1, 1, 0, true, "lost too")));
    assertEquals(List.of(), store.index(5, 0).entries());
    while (failed.isEmpty()) {
      Thread.sleep(1);
    }
    assertEquals(List.of(5), failed);
  }

  @Test
  void aFullDiskIsReportedAndOtherShufflesGoOn() throws Exception {
    open((disk, shuffle) -> shuffle == 6 ? fullDisk() : file(disk, shuffle), 10, 1 << 20);
    store.receive(List.of(Segments.segment(6, 0, 0, 0, 0, true, "lost")));
    store.receive(List.of(Segments.segment(7, 0, 0, 0, 0, true, "kept")));
    assertEquals(List.of(), store.index(6, 0).entries());
    assertEquals(1, store.index(7, 0).entries().size());
    while (failed.isEmpty()) {
      Thread.sleep(1);
    }
    assertEquals(List.of(6), failed);
  }

  private static File fullDisk() throws IOException {
    throw new IOException("No space left on device");
  }

  @Test
  void aRemovedShuffleLeavesNoFileEvenIfPagesComeLate() throws Exception {
    open(this::file, 10, 1 << 20);
    store.receive(List.of(Segments.segment(1, 0, 0, 0, 0, true, "x")));
    assertEquals(1, store.index(1, 0).entries().size());
    assertTrue(file(0, 1).exists());
    store.remove(1);
    store.receive(List.of(Segments.segment(1, 0, 0, 0, 0, true, "late")));
    assertFalse(file(0, 1).exists());
    assertEquals(List.of(), store.index(1, 0).entries());
  }

  @Test
  void aParcelThatIsNotSegmentsIsRefused() {
    open(this::file, 10, 1 << 20);
    assertThrows(IOException.class, () -> store.receive(List.of("this is no segment, though it is long enough".getBytes())));
  }
}
