package org.gristmill.core.home;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segments;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class PageStoreTest {
  @TempDir
  Path folder;
  private final List<Integer> failed = Collections.synchronizedList(new ArrayList<>());
  private PageStore store;

  /** On two disks. */
  private PageStore open(PageStore.FileChooser files, int appendBytes, long heldBytesMax) {
    store = new PageStore(2, files, (shuffle, cause) -> failed.add(shuffle), PageStoreTest::ignored, appendBytes, heldBytesMax, 240_000);
    return store;
  }

  private static void ignored(int shuffle, IOException cause) {}

  private File file(int disk, int shuffle) {
    return folder.resolve(disk + "-" + shuffle).toFile();
  }

  @AfterEach
  void close() {
    store.close();
  }

  @Test
  void receivedSegmentsAreReadBackByTheIndex() throws Exception {
    open(this::file, 1000, 0);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, false, "first");
    byte[] b = Segments.segment(1, 1, 0, 0, 0, true, "other partition");
    byte[] c = Segments.segment(1, 0, 0, 0, 1, true, "second");
    store.receive(List.of(a, b));
    store.receive(List.of(c));
    List<PartitionIndex.Entry> entries = store.index(1, 0).entries();
    assertEquals(2, entries.size());
    assertArrayEquals(c, store.read(1, 0, entries.get(1).offset(), entries.get(1).bytes()));
    assertEquals(1, store.index(1, 1).entries().size());
    assertEquals(List.of(), store.index(1, 2).entries());
    assertEquals(List.of(), store.index(99, 0).entries());
  }

  /**
   * Spark interrupts the threads of tasks that it kills; a channel that one of them reads through would close for all.
   */
  @Test
  void aReaderThatIsInterruptedLeavesTheFileToTheOthers() throws Exception {
    open(this::file, 10, 0);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, true, "before");
    byte[] b = Segments.segment(1, 0, 1, 1, 0, true, "after");
    store.receive(List.of(a));
    awaitFile(1, 0, a.length);
    Thread.currentThread().interrupt();
    assertArrayEquals(a, store.read(1, 0, 0, a.length));
    assertTrue(Thread.interrupted());
    store.receive(List.of(b));
    awaitFile(1, 0, a.length + b.length);
    assertEquals(2, store.index(1, 0).entries().size());
    assertEquals(List.of(), failed);
  }

  @Test
  void aFileThatIsDeletedIsStillRead() throws Exception {
    open(this::file, 10, 0);
    byte[] a = Segments.segment(1, 0, 0, 0, 0, true, "before");
    store.receive(List.of(a));
    awaitFile(1, 0, a.length);
    assertTrue(file(0, 1).delete());
    assertArrayEquals(a, store.read(1, 0, 0, a.length));
    assertNull(store.file(1, 0, 0, a.length)); // which would be opened by its name
    byte[] b = Segments.segment(1, 0, 1, 1, 0, true, "after");
    store.receive(List.of(b));
    assertArrayEquals(b, store.read(1, 0, a.length, b.length));
  }

  @Test
  void partitionsLieTogetherThoughTheyArriveMixed() throws Exception {
    open(this::file, 100_000, 1 << 20); // nothing is written: these are the places they would have
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
  void segmentsThatFitIntoHalfOfTheMemoryAreReadFromThereAndNotWritten() throws Exception {
    open(this::file, 300, 2 * 2048);
    byte[] large = Segments.segment(1, 0, 0, 0, 0, false, "x".repeat(400));
    byte[] small = Segments.segment(1, 0, 0, 0, 1, true, "y");
    store.receive(List.of(large, small));
    long at = store.index(1, 0).entries().get(0).offset();
    byte[] read = store.read(1, 0, at + 10, large.length + small.length - 20); // two tails, neither from its first byte to its last
    byte[] both = Arrays.copyOf(large, large.length + small.length);
    System.arraycopy(small, 0, both, large.length, small.length);
    assertArrayEquals(Arrays.copyOfRange(both, 10, both.length - 10), read);
    assertNull(store.file(1, 0, at, large.length));
    assertFalse(file(0, 1).exists());
  }

  /** A reader has an index while what it names is on its way from memory to the file. */
  @Test
  void segmentsAreTheSameIfTheyAreWrittenWhileTheyAreRead() throws Exception {
    open(this::file, 500, 4000);
    Map<PartitionIndex.Entry, byte[]> sent = new HashMap<>();
    for (int i = 0; i < 300; i++) {
      byte[] segment = Segments.segment(1, 2 * (i % 3), i, i, 0, true, (i + ",").repeat(i % 90));
      store.receive(List.of(segment));
      List<PartitionIndex.Entry> entries = store.index(1, 2 * (i % 3)).entries();
      sent.put(entries.get(entries.size() - 1), segment);
      for (var e : sent.entrySet()) {
        assertArrayEquals(e.getValue(), store.read(1, 0, e.getKey().offset(), e.getKey().bytes()));
      }
    }
    assertEquals(300, sent.size());
    assertTrue(file(0, 1).length() > 0);
  }

  @Test
  void theOldestShuffleWhosePartitionsHaveBeenAskedForIsWrittenFirst() throws Exception {
    open(this::file, 1 << 10, 2 * 1000);
    byte[] old = Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(300));
    byte[] late = Segments.segment(2, 0, 0, 0, 0, true, "y".repeat(400));
    store.receive(List.of(old));
    assertEquals(1, store.index(1, 0).entries().size());
    store.receive(List.of(late));
    awaitFile(1, 0, old.length);
    assertFalse(file(0, 2).exists());
  }

  @Test
  void withoutMemoryReceivedMeansWritten() throws Exception {
    open(this::file, 1 << 20, 0);
    byte[] segment = Segments.segment(1, 0, 0, 0, 0, true, "x");
    store.receive(List.of(segment));
    assertEquals(segment.length, file(0, 1).length());
  }

  private void awaitFile(int shuffle, int partition, int bytes) throws Exception {
    store.index(shuffle, partition);
    while (store.file(shuffle, partition, 0, bytes) == null) {
      Thread.sleep(1);
    }
    assertEquals(bytes, file(partition % 2, shuffle).length());
  }

  @Test
  void moreThanTheMemoryPassesThrough() throws Exception {
    open(this::file, 500, 2000);
    for (int i = 0; i < 200; i++) {
      store.receive(List.of(Segments.segment(1, i % 7, i, i, 0, true, "x".repeat(300))));
    }
    List<PartitionIndex.Entry> found = new ArrayList<>();
    for (int p = 0; p < 7; p++) {
      found.addAll(store.index(1, p).entries());
    }
    assertEquals(200, found.size());
    long held = found.stream().mapToLong(PartitionIndex.Entry::bytes).sum() - file(0, 1).length() - file(1, 1).length();
    assertTrue(held <= 2000 + 2 * 500, held + " bytes are in memory only");
  }

  @Test
  void aFolderThatCannotBeWrittenIsReportedOnceAndNothingIsIndexed() throws Exception {
    open((disk, shuffle) -> new File("/nonexistent/folder/" + shuffle), 10, 0);
    store.receive(List.of(Segments.segment(5, 0, 0, 0, 0, true, "lost")));
    while (failed.isEmpty()) {
      Thread.sleep(1);
    }
    assertThrows(IOException.class, () -> store.index(5, 0));
    store.receive(List.of(Segments.segment(5, 0, 1, 1, 0, true, "lost too")));
    assertThrows(IOException.class, () -> store.index(5, 0));
    assertThrows(IOException.class, () -> store.read(5, 0, 0, 10));
    assertEquals(List.of(5), failed);
  }

  @Test
  void aFullDiskIsReportedAndOtherShufflesGoOn() throws Exception {
    open((disk, shuffle) -> shuffle == 6 ? fullDisk() : file(disk, shuffle), 10, 0);
    byte[] kept = Segments.segment(7, 0, 0, 0, 0, true, "kept");
    store.receive(List.of(Segments.segment(6, 0, 0, 0, 0, true, "lost")));
    store.receive(List.of(kept));
    awaitFile(7, 0, kept.length);
    assertEquals(1, store.index(7, 0).entries().size());
    assertTrue(assertThrows(IOException.class, () -> store.index(6, 0)).getMessage().contains("No space left on device"));
    assertEquals(List.of(6), failed);
  }

  /**
   * With one of an executor's two local folders full, a job ended after four attempts, though the other one had room
   * for everything.
   */
  @Test
  void whatAFullDiskCannotTakeGoesToTheNextOne() throws Exception {
    open((disk, shuffle) -> disk == 0 ? fullDisk() : file(disk, shuffle), 10, 0);
    Map<Integer, byte[]> sent = new HashMap<>();
    for (int partition = 0; partition < 6; partition++) {
      sent.put(partition, Segments.segment(1, partition, 0, 0, 0, true, "of partition " + partition));
      store.receive(List.of(sent.get(partition)));
    }
    for (int partition = 0; partition < 6; partition++) {
      PartitionIndex.Entry entry = store.index(1, partition).entries().get(0);
      assertArrayEquals(sent.get(partition), store.read(1, partition, entry.offset(), entry.bytes()));
    }
    assertEquals(List.of(), failed);
    store.remove(1);
    assertEquals(0, folder.toFile().list().length);
  }

  private static File fullDisk() throws IOException {
    throw new IOException("No space left on device");
  }

  /** An unexpected exception ended the thread of a disk, and all senders to that executor waited for ever. */
  @Test
  void anyExceptionOfTheWriterFailsTheShuffleAndEndsAllWaits() throws Exception {
    List<Throwable> thrown = List.of(new IllegalStateException("a mistake"), new NoClassDefFoundError("a/Missing"),
        new OutOfMemoryError("no memory"));
    open((disk, shuffle) -> shuffle < thrown.size() ? sneak(thrown.get(shuffle)) : file(disk, shuffle), 10, 0);
    for (int shuffle = 0; shuffle < thrown.size(); shuffle++) {
      int id = shuffle;
      store.receive(List.of(Segments.segment(id, 0, 0, 0, 0, true, "lost")));
      IOException e = assertThrows(IOException.class, () -> store.index(id, 0));
      assertTrue(e.getMessage().contains("gristmill-store-0") && e.getMessage().contains(thrown.get(id).getMessage()), e.toString());
      assertNull(e.getCause().getCause(), "an error among the causes would end the executor");
    }
    store.receive(List.of(Segments.segment(9, 0, 0, 0, 0, true, "kept")));
    assertEquals(1, store.index(9, 0).entries().size());
    assertEquals(List.of(0, 1, 2), failed);
  }

  /**
   * The same, from outside of what writes a shuffle: then nothing of any shuffle can be stored on that disk, and
   * everybody is told.
   */
  @Test
  void aWriterThatHasEndedFailsAllShufflesNowAndLater() throws Exception {
    store = new PageStore(2, (disk, shuffle) -> shuffle == 1 ? sneak(new IOException("full")) : file(disk, shuffle), (shuffle, cause) -> {
      failed.add(shuffle);
      if (shuffle == 1) {
        throw new StackOverflowError("in the listener");
      }
    }, PageStoreTest::ignored, 10, 0, 240_000);
    store.receive(List.of(Segments.segment(1, 0, 0, 0, 0, true, "lost")));
    for (int shuffle = 2; shuffle < 5; shuffle++) {
      int id = shuffle;
      do {
        store.receive(List.of(Segments.segment(id, 0, 0, 0, 0, true, "lost if it has ended by now")));
      } while (id == 2 && !failed.contains(2));
      assertTrue(assertThrows(IOException.class, () -> store.index(id, 0)).getMessage().contains("in the listener"));
    }
    assertEquals(List.of(1, 2, 3, 4), failed);
    store.receive(List.of(Segments.segment(2, 1, 0, 0, 0, true, "kept on the other disk")));
    assertEquals(1, store.index(2, 1).entries().size());
  }

  /** The disk of a home hung, and with it every executor that sent there. */
  @Test
  void aDiskThatDoesNotAnswerFailsItsShufflesAndIsNotWaitedFor() throws Exception {
    CountDownLatch answer = new CountDownLatch(1);
    store = new PageStore(1, (disk, shuffle) -> {
      awaitUninterrupted(answer);
      return file(disk, shuffle);
    }, (shuffle, cause) -> failed.add(shuffle), PageStoreTest::ignored, 10, 0, 100);
    store.receive(List.of(Segments.segment(1, 0, 0, 0, 0, true, "lost")));
    assertTrue(assertThrows(IOException.class, () -> store.index(1, 0)).getMessage().contains("spark.gristmill.timeout"));
    store.close();
    answer.countDown(); // what it writes then changes nothing
    assertThrows(IOException.class, () -> store.read(1, 0, 0, 10));
    assertEquals(List.of(1), failed);
  }

  private static void awaitUninterrupted(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> File sneak(Throwable e) throws E {
    throw (E) e;
  }

  private void storeAndRemoveWhatAttemptWrote(int attempt) throws Exception {
    open(this::file, 10, 0);
    byte[] segment = Segments.segment(1, 0, 0, attempt, 0, true, "x");
    store.receive(List.of(segment));
    awaitFile(1, 0, segment.length);
    store.remove(1);
  }

  @Test
  void aRemovedShuffleLeavesNoFileEvenIfPagesComeLate() throws Exception {
    storeAndRemoveWhatAttemptWrote(0);
    store.receive(List.of(Segments.segment(1, 0, 0, 0, 0, true, "late")));
    assertFalse(file(0, 1).exists());
    assertEquals(List.of(), store.index(1, 0).entries());
  }

  @Test
  void aRemovedShuffleMayBeWrittenAgainByLaterAttempts() throws Exception {
    storeAndRemoveWhatAttemptWrote(7);
    byte[] again = Segments.segment(1, 0, 0, 8, 0, true, "again");
    store.receive(List.of(Segments.segment(1, 0, 1, 6, 0, true, "late"), again));
    awaitFile(1, 0, again.length);
    assertEquals(List.of(8L), store.index(1, 0).entries().stream().map(PartitionIndex.Entry::attempt).toList());
  }

  @Test
  void aParcelThatIsNotSegmentsIsRefused() {
    open(this::file, 10, 1 << 20);
    assertThrows(IOException.class, () -> store.receive(List.of("this is no segment, though it is long enough".getBytes(UTF_8))));
  }
}
