package org.gristmill.core.driver;

import java.util.Arrays;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * The {@link SizeCode}s of one map's partitions, in a fraction of a byte each. Maps of a shuffle write much the same:
 * the codes are kept as differences from those of another map, nearly all of which are 0 or 1, and deflated. A driver
 * keeps these for every map.
 */
record PackedSizes(byte[] like, byte[] packed) {
  /** @param like the codes of another map; they must not change */
  static PackedSizes of(byte[] codes, byte[] like) {
    byte[] differences = new byte[codes.length];
    for (int p = 0; p < codes.length; p++) {
      differences[p] = (byte) (codes[p] - like[p]);
    }
    Deflater deflater = new Deflater(Deflater.BEST_SPEED, true);
    deflater.setInput(differences);
    deflater.finish();
    byte[] packed = new byte[64 + codes.length / 8];
    int length = 0;
    while (!deflater.finished()) {
      length += deflater.deflate(packed, length, packed.length - length);
      packed = length < packed.length ? packed : Arrays.copyOf(packed, 2 * length);
    }
    deflater.end();
    return new PackedSizes(like, Arrays.copyOf(packed, length));
  }

  byte[] codes() {
    byte[] codes = new byte[like.length];
    Inflater inflater = new Inflater(true);
    inflater.setInput(packed);
    try {
      for (int length = 0; length < codes.length;) {
        int more = inflater.inflate(codes, length, codes.length - length);
        if (more == 0) {
          throw new IllegalStateException("packed sizes end after " + length + " of " + codes.length);
        }
        length += more;
      }
    } catch (DataFormatException e) {
      throw new IllegalStateException("sizes that this process has packed cannot be read", e);
    } finally {
      inflater.end();
    }
    for (int p = 0; p < codes.length; p++) {
      codes[p] += like[p];
    }
    return codes;
  }
}
