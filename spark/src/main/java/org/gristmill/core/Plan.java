package org.gristmill.core;

import java.util.Arrays;

/**
 * Where the partitions of a shuffle live: {@code homes[p]} is the executor of partition p. A later plan of the same shuffle
 * has a higher epoch; it differs only where a home was lost.
 */
public record Plan(int shuffle, int epoch, String[] homes) {
  @Override
  public boolean equals(Object other) {
    return other instanceof Plan p && p.shuffle == shuffle && p.epoch == epoch && Arrays.equals(p.homes, homes);
  }

  @Override
  public int hashCode() {
    return 31 * shuffle + epoch;
  }

  @Override
  public String toString() {
    return "Plan(shuffle " + shuffle + ", epoch " + epoch + ", " + Arrays.toString(homes) + ")";
  }
}
