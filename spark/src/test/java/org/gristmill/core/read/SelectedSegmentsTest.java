package org.gristmill.core.read;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
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

  @TempDir Path folder;
  private PageStore store;

  @BeforeEach
  void receive() throws Exception {
    store = new PageStore(1, (disk, shuffle) -> folder.resolve("store").toFile(), (shuffle, cause) -> { }, 1 << 20, 1 << 20, 60_000);
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
    SelectedSegments segments = new SelectedSegments(new PartitionSource.Local(store, 1, 0), store.index(1, 0).entries(), readBytes, 1,
        UNCOUNTED);
    StringBuilder read = new StringBuilder();
    while (segments.next()) {
      read.append(new String(segments.bytes(), segments.bodyAt(), segments.bodyBytes(), StandardCharsets.US_ASCII)).append(' ');
    }
    return read.toString();
  }

  /** A query that takes the first and the last of a few rows gave others than with the sort shuffle (Spark's own tests of that). */
  @Test
  void inOnePieceTheyComeAsTheMapsWroteThem() throws Exception {
    assertEquals("0a 1a 1b 2a ", read(1 << 20));
  }

  @Test
  void inPiecesEachPieceDoes() throws Exception {
    assertEquals("1b 2a 0a 1a ", read(2 * (Segment.HEADER_BYTES + 2)));
  }
}
