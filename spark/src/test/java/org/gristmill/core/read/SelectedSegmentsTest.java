package org.gristmill.core.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;
import org.gristmill.core.home.PageStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Segments of one partition that arrived in another order than they were written in. */
@Timeout(300)
class SelectedSegmentsTest {
  private static final FetchMetrics UNCOUNTED = new FetchMetrics() {
    @Override
    public void fetchedHere(long bytes) {}

    @Override
    public void fetchedElsewhere(long bytes) {}

    @Override
    public void waited(long millis) {}
  };

  @TempDir
  Path folder;
  private PageStore store;

  @BeforeEach
  void receive() throws Exception {
    store = new PageStore(1, (disk, shuffle) -> folder.resolve("store").toFile(), (shuffle, cause) -> {}, (shuffle, cause) -> {}, 1 << 20, 1 << 20,
        60_000);
    store.receive(List.of(segment(2, 0, true, "2a"), segment(1, 1, true, "1b"), segment(0, 0, true, "0a"), segment(1, 0, false, "1a")));
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static byte[] segment(int map, int sequence, boolean last, String body) {
    byte[] bytes = new byte[Segment.HEADER_BYTES + body.length()];
    System.arraycopy(body.getBytes(StandardCharsets.US_ASCII), 0, bytes, Segment.HEADER_BYTES, body.length());
    Segment.seal(bytes, bytes.length, 1, 0, map, map, sequence, last, 1);
    return bytes;
  }

  private String read(int readBytes) throws IOException, InterruptedException {
    return read(new PartitionSource.Local(store, 1, 0), readBytes, 1);
  }

  private static String read(PartitionSource source, int readBytes, long aheadBytes) throws IOException {
    return read(source, readBytes, aheadBytes, Integer.MAX_VALUE);
  }

  private static String read(PartitionSource source, int readBytes, long aheadBytes, int most) throws IOException {
    return read(source, new SelectedSegments.Limits(readBytes, aheadBytes, 0), most);
  }

  private static String read(PartitionSource source, SelectedSegments.Limits limits, int most) throws IOException {
    SelectedSegments segments = new SelectedSegments(source, source.index().entries(), limits, UNCOUNTED);
    StringBuilder read = new StringBuilder();
    for (int i = 0; i < most && segments.next(); i++) {
      read.append(new String(segments.body().readAllBytes(), StandardCharsets.US_ASCII)).append(' ');
    }
    return read.toString();
  }

  /**
   * A query that takes the first and the last of a few rows gave others than with the sort shuffle (Spark's own tests
   * of that).
   */
  @Test
  void inOnePieceTheyComeAsTheMapsWroteThem() throws Exception {
    assertEquals("0a 1a 1b 2a ", read(1 << 20));
  }

  /**
   * A PySpark job of two shuffles was ended when an executor died after the first results: its maps read in another
   * order when they ran again, and packed the same records into other batches.
   */
  @Test
  void inManyPiecesTheyComeAsTheMapsWroteThemIfThatIsAskedFor() throws Exception {
    int segment = Segment.HEADER_BYTES + 2;
    for (PartitionSource source : List.of(new PartitionSource.Local(store, 1, 0), new Elsewhere(store, bytes -> bytes))) {
      for (long aheadBytes : new long[] {0, segment, Long.MAX_VALUE}) {
        assertEquals("0a 1a 1b 2a ", read(source, new SelectedSegments.Limits(0, aheadBytes, 4 * segment), 9));
        assertEquals("0a 1b 2a 1a ", read(source, new SelectedSegments.Limits(0, aheadBytes, 3 * segment), 9));
        assertEquals("2a 1b 0a 1a ", read(source, new SelectedSegments.Limits(0, aheadBytes, 1), 9));
      }
    }
  }

  /**
   * With {@code spark.reducer.maxSizeInFlight=512k}, read as 0 MiB, nothing was asked for, and that was taken for the
   * end.
   */
  @Test
  void fromAnotherExecutorEverySegmentComesHoweverLittleMayBeUnderWay() throws Exception {
    for (long aheadBytes : new long[] {Long.MIN_VALUE, 0, 1, 100, Long.MAX_VALUE}) {
      assertEquals("1b 2a 0a 1a ", read(new Elsewhere(store, bytes -> bytes), 2 * (Segment.HEADER_BYTES + 2), aheadBytes));
      assertEquals("2a 1b 0a 1a ", read(new Elsewhere(store, bytes -> bytes), 0, aheadBytes));
    }
  }

  /** A segment whose checksum is right can still be another one than the index names. */
  @Test
  void aSegmentThatIsNotTheOneOfTheIndexIsRefused() throws Exception {
    List<byte[]> others = List.of(sealed(2, 0, 2, 2, 0, true, 1), sealed(1, 1, 2, 2, 0, true, 1), sealed(1, 0, 3, 2, 0, true, 1),
        sealed(1, 0, 2, 3, 0, true, 1), sealed(1, 0, 2, 2, 1, true, 1), sealed(1, 0, 2, 2, 0, false, 1), sealed(1, 0, 2, 2, 0, true, 2));
    for (byte[] other : others) {
      var e = assertThrows(SelectedSegments.CorruptSegmentException.class, () -> read(new Elsewhere(store, bytes -> other), 0, 0));
      assertTrue(e.getMessage().contains("is not the one that the index names"), e.getMessage());
      assertEquals(2, e.mapIndex());
    }
    assertEquals("2a ", read(new Elsewhere(store, bytes -> sealed(1, 0, 2, 2, 0, true, 1)), 0, 0, 1));
  }

  private static byte[] sealed(int shuffle, int partition, int map, long attempt, int sequence, boolean last, int records) {
    byte[] bytes = new byte[Segment.HEADER_BYTES + 2];
    bytes[Segment.HEADER_BYTES] = '2';
    bytes[Segment.HEADER_BYTES + 1] = 'a';
    Segment.seal(bytes, bytes.length, shuffle, partition, map, attempt, sequence, last, records);
    return bytes;
  }

  /** The store of another executor, and what becomes of its bytes on the way. */
  private record Elsewhere(PageStore store, UnaryOperator<byte[]> way) implements PartitionSource {
    @Override
    public int shuffle() {
      return 1;
    }

    @Override
    public int partition() {
      return 0;
    }

    @Override
    public PartitionIndex index() throws IOException {
      return store.index(1, 0);
    }

    @Override
    public CompletableFuture<byte[]> read(long offset, int length) {
      try {
        return CompletableFuture.completedFuture(way.apply(store.read(1, 0, offset, length)));
      } catch (IOException e) {
        return CompletableFuture.failedFuture(e);
      }
    }

    @Override
    public byte[] await(CompletableFuture<byte[]> read) {
      return read.join();
    }

    @Override
    public boolean local() {
      return false;
    }
  }

  @Test
  void inPiecesEachPieceDoes() throws Exception {
    assertEquals("1b 2a 0a 1a ", read(2 * (Segment.HEADER_BYTES + 2)));
  }
}
