package org.gristmill.core.home;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.gristmill.core.driver.Coordinator;
import org.gristmill.core.driver.RecordingDriver;
import org.gristmill.core.format.ArrivingParcel;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Message;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;
import org.gristmill.core.format.Segments;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/**
 * A few bytes that declared a length of two gigabytes made an executor or the driver allocate as many, and end for want
 * of memory. What comes from the network is refused, or believed as far as its bytes have come.
 */
class HostileLengthsTest {
  private static final int[] HOSTILE = {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE - 1, Integer.MAX_VALUE - 44, 1 << 30};
  private static final long ALLOCATED_MAX = 16 << 20;
  private static final int PARTITION_AT = 8; // in a segment's header
  private static final int BODY_BYTES_AT = 36;

  @TempDir
  Path folder;

  /** Fails if this thread allocates much meanwhile. */
  private static void withLittleMemory(String what, Executable code) throws Throwable {
    ThreadMXBean thread = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = thread.getThreadAllocatedBytes(Thread.currentThread().getId());
    code.execute();
    long bytes = thread.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
    assertTrue(bytes < ALLOCATED_MAX, what + " made it allocate " + bytes + " bytes");
  }

  private static byte[] with(byte[] bytes, int at, int number) {
    byte[] changed = bytes.clone();
    ByteBuffer.wrap(changed).putInt(at, number);
    return changed;
  }

  @Test
  void aSegmentIsGivenMemoryAsItsBytesArrive() throws Throwable {
    byte[] segment = Segments.segment(1, 0, 0, 5, 0, true, "grain");
    for (int length : HOSTILE) {
      byte[] hostile = with(segment, BODY_BYTES_AT, length);
      for (int parcelBytes : new int[] {segment.length, Integer.MAX_VALUE}) {
        withLittleMemory("a body of " + length + " bytes", () -> {
          ArrivingParcel parcel = new ArrivingParcel(parcelBytes);
          assertThrows(IOException.class, () -> {
            parcel.add(ByteBuffer.wrap(hostile));
            parcel.segments();
          });
        });
      }
    }
    for (int length : new int[] {-1, Integer.MIN_VALUE}) {
      assertThrows(IllegalArgumentException.class, () -> new ArrivingParcel(length));
    }
  }

  /** Arrays grow, and are whole all the same. */
  @Test
  void aLongSegmentArrivesInPiecesOfAnySize() throws IOException {
    byte[] body = new byte[5_000_000];
    new Random(1).nextBytes(body);
    byte[] segment = new byte[Segment.HEADER_BYTES + body.length];
    System.arraycopy(body, 0, segment, Segment.HEADER_BYTES, body.length);
    Segment.seal(segment, segment.length, 1, 0, 0, 5, 0, true, 1);
    byte[] small = Segments.segment(1, 0, 1, 6, 0, true, "grain");
    byte[] both = Segments.join(segment, small);
    for (int size : new int[] {99_999, 1 << 20, both.length}) {
      ArrivingParcel parcel = new ArrivingParcel(both.length);
      for (int at = 0; at < both.length; at += size) {
        parcel.add(ByteBuffer.wrap(both, at, Math.min(size, both.length - at)));
      }
      assertArrayEquals(segment, parcel.segments().get(0));
      assertArrayEquals(small, parcel.segments().get(1));
    }
  }

  @Test
  void aSegmentWithANegativeNumberIsRefused() {
    byte[] segment = Segments.segment(1, 0, 0, 5, 0, true, "grain");
    for (int at : new int[] {4, PARTITION_AT, 12, 16, 24, 32}) {
      byte[] hostile = with(segment, at, -1);
      assertThrows(IOException.class, () -> Segment.header(hostile, 0, hostile.length), "byte " + at);
    }
  }

  @Test
  void anIndexThatNamesImpossibleSegmentsIsRefused() throws Throwable {
    byte[] index = new PartitionIndex(List.of(new PartitionIndex.Entry(1, 2, 3, true, 4, 5, 44))).encode();
    int bytesAt = index.length - 4;
    int offsetAt = bytesAt - 8;
    for (int number : HOSTILE) {
      withLittleMemory(number + " entries",
          () -> assertThrows(IOException.class, () -> PartitionIndex.decode(ByteBuffer.wrap(with(index, 4, number)))));
    }
    for (byte[] hostile : List.of(with(index, bytesAt, -1), with(index, bytesAt, 43), with(index, bytesAt, Integer.MIN_VALUE),
        with(index, offsetAt, -1), with(index, offsetAt, Integer.MAX_VALUE), with(index, 8, -1))) {
      assertThrows(IOException.class, () -> PartitionIndex.decode(ByteBuffer.wrap(hostile)));
    }
  }

  @Test
  void bytesThatAreNotStoredAreRefusedForAnyLength() throws Throwable {
    for (long heldBytesMax : new long[] {0, 1 << 20}) { // in the file, in memory
      Path here = Files.createDirectory(folder.resolve("held" + heldBytesMax));
      try (PageStore store = new PageStore(1, (disk, shuffle) -> here.resolve("" + shuffle).toFile(), (shuffle, cause) -> {}, (shuffle, cause) -> {},
          10,
          heldBytesMax, 60_000)) {
        byte[] segment = Segments.segment(1, 0, 0, 5, 0, true, "grain");
        store.receive(List.of(segment));
        assertEquals(1, store.index(1, 0).entries().size());
        assertEquals(segment.length, store.largestSegment(1, 0));
        for (int length : HOSTILE) {
          withLittleMemory(length + " bytes", () -> {
            assertThrows(IOException.class, () -> store.read(1, 0, 0, length));
            assertThrows(IOException.class, () -> store.file(1, 0, 0, length));
          });
        }
        for (long offset : new long[] {-1, 1, segment.length, PartitionIndex.OFFSET_MAX, Long.MAX_VALUE, Long.MIN_VALUE}) {
          assertThrows(IOException.class, () -> store.read(1, 0, offset, segment.length), "offset " + offset);
        }
        assertArrayEquals(segment, store.read(1, 0, 0, segment.length));
        assertThrows(IOException.class, () -> store.receive(List.of(with(segment, PARTITION_AT, -1))));
      }
    }
  }

  /** They were readable for every user of the machine. */
  @Test
  void filesOfAHomeAreTheirOwnersAlone() throws Exception {
    File file = folder.resolve("mine").toFile();
    try (StoreFile store = new StoreFile(file)) {
      assertEquals(store.file(), file);
      assertEquals(Set.copyOf(PosixFilePermissions.fromString("rw-------")), Files.getPosixFilePermissions(file.toPath()));
    }
  }

  /** Each kind of message, with a count in it that is far more than its bytes. */
  @Test
  void aMessageThatDeclaresMoreThanItHoldsIsRefused() throws Throwable {
    for (long count : new long[] {Integer.MAX_VALUE, 1L << 31, 1L << 32, (1L << 32) + 2, Long.MAX_VALUE, 100_000_000}) {
      byte[] varint = varint(count);
      for (byte[] before : List.of(
          new byte[] {3, 0}, // a Begin with this number of bytes for its partitions
          join(new byte[] {4}, new byte[28]), // a Commit with this number of sizes
          join(new byte[] {5, 1}, new byte[8]), // a Shaped
          join(new byte[] {7}, new byte[8]), // a Planned that names this number of executors
          join(new byte[] {7}, new byte[9]), // or homes
          join(new byte[] {9}, new byte[4]), // a Located: executors
          join(new byte[] {9}, new byte[5]), // homes
          join(new byte[] {9}, new byte[6]), // attempts
          join(new byte[] {12}, new byte[8]))) { // a Missing: winners
        withLittleMemory(count + " in a message of kind " + before[0], () -> assertThrows(UncheckedIOException.class,
            () -> Message.decode(join(before, varint))));
      }
    }
    byte[] noSuchExecutor = join(new byte[] {7}, new byte[8], new byte[] {0, 1, 5, 0, 0});
    assertThrows(UncheckedIOException.class, () -> Message.decode(noSuchExecutor));
    byte[] endless = new byte[100];
    Arrays.fill(endless, (byte) 0xff);
    assertThrows(UncheckedIOException.class, () -> Message.decode(join(new byte[] {3, 0}, endless)));
  }

  /** Bytes at random after every kind: an answer or that one exception, and never much memory. */
  @Test
  void messagesOfRandomBytesAreReadOrRefused() throws Throwable {
    Random random = new Random(7);
    for (int i = 0; i < 100_000; i++) {
      byte[] bytes = new byte[1 + random.nextInt(40)];
      random.nextBytes(bytes);
      bytes[0] = (byte) (1 + random.nextInt(14));
      withLittleMemory("message " + i, () -> {
        try {
          Message.decode(bytes);
        } catch (UncheckedIOException e) {
          assertTrue(e.getMessage().contains("cannot be read"));
        }
      });
    }
  }

  @Test
  void theDriverRefusesNumbersThatAShuffleDoesNotHave() throws Throwable {
    RecordingDriver driver = new RecordingDriver();
    Coordinator coordinator = new Coordinator(driver, driver, 0.5, Recovery.RECOMPUTE, false);
    coordinator.executorAdded(new Executor("a", "host", 1));
    coordinator.shuffleAdded(1, 2, 3, () -> true);
    coordinator.start(1, 0, 5, "a");
    for (int number : HOSTILE) {
      withLittleMemory(String.valueOf(number), () -> {
        refused(() -> coordinator.start(1, number, 6, "a"));
        refused(() -> coordinator.locate(1, number, number, 6, 1, 0));
        refused(() -> coordinator.locate(1, 0, number, 6, 1, 0));
        refused(() -> coordinator.missing(1, number, Map.of(0, 5L), null, "why"));
      });
    }
    refused(() -> coordinator.commit(1, 5, 1, 1, new long[2], Digest.EMPTY));
    refused(() -> coordinator.commit(1, 5, 1, 1, new long[] {1, -1, 1}, Digest.EMPTY));
    assertTrue(coordinator.commit(1, 5, 1, 1, new long[3], Digest.EMPTY).accepted());
  }

  private static void refused(Executable call) {
    assertTrue(assertThrows(IllegalArgumentException.class, call).getMessage().contains("which has 2 maps and 3 partitions"));
  }

  private static byte[] varint(long value) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    long rest = value;
    for (; rest >= 0x80; rest >>>= 7) {
      out.write((int) (rest & 0x7f | 0x80));
    }
    out.write((int) rest);
    return out.toByteArray();
  }

  private static byte[] join(byte[]... parts) {
    return Segments.join(parts);
  }
}
