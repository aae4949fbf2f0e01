package org.gristmill.core.plan;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Puts partitions on nodes before the reduce tasks exist, so that all nodes are done at the same time; a node's load is
 * its bytes divided by its speed. The driver's {@code HomeChooser} decides which executors are nodes, and which
 * of these rules holds.
 */
public final class Placement {
  private record Node(int id, double load) {}

  private Placement() {}

  /**
   * Longest first, each to the node that would be free soonest (OPS, procedure 2). The paper's loop stops one partition
   * short; here all are placed.
   *
   * @param sizes bytes of each partition
   * @param speeds relative speed of each node, greater than 0
   * @return the node of each partition
   */
  public static int[] longestFirst(long[] sizes, double[] speeds) {
    return longestFirst(sizes, speeds, new double[speeds.length]);
  }

  /** The same, onto nodes that already carry {@code loads} (bytes divided by speed). */
  public static int[] longestFirst(long[] sizes, double[] speeds, double[] loads) {
    PriorityQueue<Node> nodes = new PriorityQueue<>(Comparator.comparingDouble(Node::load).thenComparingInt(Node::id));
    for (int n = 0; n < speeds.length; n++) {
      nodes.add(new Node(n, loads[n]));
    }
    int[] home = new int[sizes.length];
    for (int p : largestFirst(sizes)) {
      Node node = nodes.remove();
      home[p] = node.id;
      nodes.add(new Node(node.id, node.load + sizes[p] / speeds[node.id]));
    }
    return home;
  }

  private static int[] largestFirst(long[] sizes) {
    return IntStream.range(0, sizes.length).boxed().sorted((a, b) -> Long.compare(sizes[b], sizes[a])).mapToInt(Integer::intValue).toArray();
  }

  /**
   * For each partition, largest first, the least loaded node that is not its home, whose loads count too. Needs two
   * nodes.
   */
  public static int[] secondHomes(int[] home, long[] sizes, int nodes) {
    double[] loads = new double[nodes];
    for (int p = 0; p < home.length; p++) {
      loads[home[p]] += sizes[p];
    }
    int[] second = new int[home.length];
    for (int p : largestFirst(sizes)) {
      second[p] = IntStream.range(0, nodes).filter(n -> n != home[p]).boxed()
          .min(Comparator.comparingDouble(n -> loads[n])).orElseThrow();
      loads[second[p]] += sizes[p];
    }
    return second;
  }

  /**
   * As many partitions to each node (within one), in their order. Partitions that adaptive execution has one task read
   * lie together then, and those of two shuffles that are joined lie alike.
   */
  public static int[] ranges(int partitions, int nodes) {
    return IntStream.range(0, partitions).map(p -> (int) ((long) p * nodes / partitions)).toArray();
  }

  /** Partition p to node p mod n, for when sizes cannot be predicted. */
  public static int[] roundRobin(int partitions, int nodes) {
    return IntStream.range(0, partitions).map(p -> p % nodes).toArray();
  }

  /** Speeds of nodes that are alike. */
  public static double[] alike(int nodes) {
    return DoubleStream.generate(() -> 1).limit(nodes).toArray();
  }

  /** The largest load of a node: bytes divided by its speed. */
  public static double fullest(int[] home, long[] sizes, double[] speeds) {
    double[] load = new double[speeds.length];
    for (int p = 0; p < home.length; p++) {
      load[home[p]] += sizes[p] / speeds[home[p]];
    }
    return DoubleStream.of(load).max().orElse(0);
  }

  /** Bytes of the fullest node over the mean; 1 is perfect balance. */
  public static double imbalance(int[] home, long[] sizes, int nodes) {
    long total = LongStream.of(sizes).sum();
    return total == 0 ? 1 : fullest(home, sizes, alike(nodes)) * nodes / total;
  }
}
