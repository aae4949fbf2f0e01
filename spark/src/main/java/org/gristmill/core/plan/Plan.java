package org.gristmill.core.plan;

import java.util.Arrays;
import java.util.Collections;

/**
 * Where the partitions of a shuffle live: {@code homes[p]} is the executor of partition p, and {@code replicas[p]} the
 * one that keeps it too, or empty if none does. A later plan of the same shuffle has a higher epoch; it differs only
 * where an executor was lost.
 */
public record Plan(int shuffle, int epoch, String[] homes, String[] replicas) {
  /** A plan without replicas. */
  public Plan(int shuffle, int epoch, String[] homes) {
    this(shuffle, epoch, homes, none(homes.length));
  }

  /** No executor of none of {@code partitions} partitions. */
  public static String[] none(int partitions) {
    return Collections.nCopies(partitions, "").toArray(String[]::new);
  }

  public boolean hasReplica(int partition) {
    return !replicas[partition].isEmpty();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Plan p && p.shuffle == shuffle && p.epoch == epoch && Arrays.equals(p.homes, homes)
        && Arrays.equals(p.replicas, replicas);
  }

  @Override
  public int hashCode() {
    return 31 * shuffle + epoch;
  }

  @Override
  public String toString() {
    return "Plan(shuffle " + shuffle + ", epoch " + epoch + ", " + Arrays.toString(homes) + ", replicas " + Arrays.toString(replicas)
        + ")";
  }
}
