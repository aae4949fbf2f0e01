import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Random;
import org.gristmill.core.driver.Coordinator;
import org.gristmill.core.driver.MapOutputs;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;

/**
 * How much memory of the driver a large shuffle needs, and how long a commit takes: heap after a garbage collection,
 * and CPU time of the calls, when all maps have committed, and when all have run again for what one of ten executors
 * has lost.
 *
 * <p>Usage, after a build: java -Xmx3g -cp spark/target/classes bench/spark/Ledger.java [MAPS PARTITIONS]
 */
class Ledger {
  private static final int EXECUTORS = 10;
  private static final Digest SAME = new Digest(10, 12, 34, 0, false, List.of());

  enum Sizes { EVEN, SKEWED, SPARSE, SORTED }

  public static void main(String[] args) {
    int maps = args.length > 0 ? Integer.parseInt(args[0]) : 10_000;
    int partitions = args.length > 1 ? Integer.parseInt(args[1]) : 10_000;
    System.out.println("sizes\tMB written\tus a commit\tMB after a loss\tMB run again\tus a commit");
    run(Sizes.EVEN, Math.min(maps, 500), partitions); // warms up
    for (Sizes sizes : Sizes.values()) {
      System.out.println(run(sizes, maps, partitions));
    }
    located(2000, 2000);
  }

  /** Prints how many bytes tell a reduce task where its partition lies, after a loss and the redo. */
  private static void located(int maps, int partitions) {
    Coordinator coordinator = coordinator(maps, partitions);
    commits(coordinator, Sizes.EVEN, maps, partitions, 0);
    coordinator.flushBegins(1).values().forEach(attempts -> coordinator.flushed(1, attempts));
    coordinator.executorLost("e9");
    commits(coordinator, Sizes.EVEN, maps, partitions, maps);
    System.out.println(maps + " maps and " + partitions + " partitions: a reduce task is sent "
        + Message.encode(new Message.Located(coordinator.locate(1, 7, 8, 2L * maps, 1, 0))).length + " bytes");
  }

  private static Coordinator coordinator(int maps, int partitions) {
    Object nothing = surroundings();
    Coordinator coordinator = new Coordinator((MapOutputs) nothing, (Coordinator.Announcer) nothing, 0.2, Recovery.RECOMPUTE, false);
    for (int e = 0; e < EXECUTORS; e++) {
      coordinator.executorAdded(new Executor("e" + e, "host", 1));
    }
    coordinator.shuffleAdded(1, maps, partitions, () -> true);
    return coordinator;
  }

  private static String run(Sizes sizes, int maps, int partitions) {
    long before = heapBytes();
    Coordinator coordinator = coordinator(maps, partitions);
    double first = commits(coordinator, sizes, maps, partitions, 0);
    coordinator.flushBegins(1).values().forEach(attempts -> coordinator.flushed(1, attempts));
    String line = String.format("%s\t%.1f\t%.0f", sizes, (heapBytes() - before) / 1e6, first);
    coordinator.executorLost("e3");
    line += String.format("\t%.1f", (heapBytes() - before) / 1e6);
    double again = commits(coordinator, sizes, maps, partitions, maps);
    return line + String.format("\t%.1f\t%.0f", (heapBytes() - before) / 1e6, again) + (coordinator.has(1) ? "" : "?");
  }

  /** CPU time of one call, on average. */
  private static double commits(Coordinator coordinator, Sizes kind, int maps, int partitions, long firstAttempt) {
    long nanos = 0;
    for (int m = 0; m < maps; m++) {
      long attempt = firstAttempt + m;
      Emission emission = coordinator.start(1, m, attempt, "e" + m % EXECUTORS);
      long[] sizes = sizes(kind, m, maps, partitions);
      for (int p = 0; p < partitions; p++) {
        sizes[p] = emission.includes(p) ? sizes[p] : 0;
      }
      long start = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      if (!coordinator.commit(1, attempt, 1000, 10, sizes, SAME).accepted()) {
        throw new IllegalStateException("attempt " + attempt + " was refused");
      }
      nanos += ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - start;
      coordinator.taskSucceeded(attempt);
    }
    return nanos / 1e3 / maps;
  }

  private static long[] sizes(Sizes kind, int map, int maps, int partitions) {
    Random random = new Random(map); // a map that runs again writes the same
    long[] sizes = new long[partitions];
    for (int p = 0; p < partitions; p++) {
      double noise = random.nextDouble();
      sizes[p] = switch (kind) {
        case EVEN -> (long) (64_000 * (0.95 + 0.1 * noise));
        case SKEWED -> (long) (64_000_000 * (0.8 + 0.4 * noise) / (p + 1));
        case SPARSE -> noise < 0.01 ? (long) (6_400_000 * noise * 100) : 0;
        case SORTED -> Math.abs(p - (double) map * partitions / maps) < 2 ? (long) (64_000_000 * noise) : 0;
      };
    }
    return sizes;
  }

  private static long heapBytes() {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 3; i++) {
      System.gc();
      least = Math.min(least, Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory());
    }
    return least;
  }

  /** Stands for the rest of a driver and does nothing. */
  private static Object surroundings() {
    return Proxy.newProxyInstance(Ledger.class.getClassLoader(), new Class<?>[] {MapOutputs.class, Coordinator.Announcer.class},
        (self, method, arguments) -> method.getReturnType() == void.class ? null : Array.get(Array.newInstance(method.getReturnType(), 1), 0));
  }
}
