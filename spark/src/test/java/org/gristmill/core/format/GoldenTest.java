package org.gristmill.core.format;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * The bytes of pages and indexes are a promise: what an executor of one build writes, another of the same version
 * reads.
 */
class GoldenTest {
  private static final byte[] PAGE = Segments.join(Segments.segment(7, 3, 11, 1234567890123L, 0, false, "grain"),
      Segments.segment(7, 3, 12, 5, 2, true, ""));
  private static final PartitionIndex INDEX = new PartitionIndex(List.of(
      new PartitionIndex.Entry(11, 1234567890123L, 0, false, 5, 0, 49), new PartitionIndex.Entry(12, 5, 2, true, 0, 1L << 33, 44)));

  @Test
  void pagesHaveTheGoldenBytes() throws IOException {
    assertArrayEquals(golden("page.hex"), PAGE);
  }

  @Test
  void theGoldenPageIsReadBack() throws IOException {
    byte[] page = golden("page.hex");
    List<byte[]> segments = arrived(page, page.length);
    assertEquals(2, segments.size());
    Segment.Header first = Segment.header(segments.get(0), 0, segments.get(0).length);
    Segment.Header second = Segment.header(segments.get(1), 0, segments.get(1).length);
    assertEquals(List.of(7, 3, 11, 0, 5, 5), List.of(first.shuffle(), first.partition(), first.mapIndex(), first.sequence(),
        first.records(), first.bodyBytes()));
    assertEquals(1234567890123L, first.attempt());
    assertFalse(first.last());
    assertTrue(second.last());
    assertTrue(Segment.intact(segments.get(0), 0, first.segmentBytes()));
    assertTrue(Segment.intact(segments.get(1), 0, second.segmentBytes()));
  }

  @Test
  void indexesHaveTheGoldenBytesAndAreReadBack() throws IOException {
    assertArrayEquals(golden("index.hex"), INDEX.encode());
    assertEquals(INDEX, PartitionIndex.decode(ByteBuffer.wrap(golden("index.hex"))));
  }

  @Test
  void everyFlippedBitOfAPageIsNoticed() throws IOException {
    byte[] page = Segments.segment(7, 3, 11, 1234567890123L, 0, true, "grain");
    for (int bit = 0; bit < page.length * 8; bit++) {
      byte[] flipped = page.clone();
      flipped[bit / 8] ^= (byte) (1 << bit % 8);
      assertFalse(Segment.intact(flipped, 0, flipped.length), "bit " + bit);
    }
  }

  @Test
  void everyTruncationOfAPageIsAnError() {
    for (int length = 0; length < PAGE.length; length++) {
      int cut = length;
      assertThrows(IOException.class, () -> arrived(PAGE, cut), "cut to " + cut);
    }
  }

  @Test
  void aPageIsReadBackInPiecesOfAnySize() throws IOException {
    for (int size = 1; size <= PAGE.length; size++) {
      ArrivingParcel parcel = new ArrivingParcel(PAGE.length);
      for (int at = 0; at < PAGE.length; at += size) {
        parcel.add(ByteBuffer.wrap(PAGE, at, Math.min(size, PAGE.length - at)));
      }
      assertArrayEquals(PAGE, Segments.join(parcel.segments().toArray(byte[][]::new)), "pieces of " + size);
    }
  }

  /** The first {@code count} bytes of a page that was sent whole. */
  private static List<byte[]> arrived(byte[] page, int count) throws IOException {
    ArrivingParcel parcel = new ArrivingParcel(page.length);
    parcel.add(ByteBuffer.wrap(page, 0, count));
    return parcel.segments();
  }

  @Test
  void everyTruncationOfAnIndexIsAnError() {
    byte[] index = INDEX.encode();
    for (int length = 0; length < index.length; length++) {
      ByteBuffer cut = ByteBuffer.wrap(index, 0, length);
      assertThrows(IOException.class, () -> PartitionIndex.decode(cut), "cut to " + length);
    }
  }

  private static byte[] golden(String name) throws IOException {
    try (var in = GoldenTest.class.getResourceAsStream("/golden/" + name)) {
      return HexFormat.of().parseHex(new String(in.readAllBytes(), US_ASCII).replaceAll("\\s", ""));
    }
  }
}
