package org.gristmill.core.driver;

/**
 * A size in one byte: 0 only for 0, else its logarithm to the base 1.2 (at most 10 % off), as Spark's own map status
 * does.
 */
final class SizeCode {
  private static final double LOG_BASE = Math.log(1.2);

  private SizeCode() {}

  static byte[] encode(long[] sizes) {
    byte[] codes = new byte[sizes.length];
    for (int i = 0; i < sizes.length; i++) {
      codes[i] = sizes[i] <= 0 ? 0 : (byte) Math.min(255, 1 + Math.round(Math.log(sizes[i]) / LOG_BASE));
    }
    return codes;
  }

  static long decode(byte code) {
    return code == 0 ? 0 : Math.max(1, Math.round(Math.exp(((code & 0xff) - 1) * LOG_BASE)));
  }
}
