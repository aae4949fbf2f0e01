import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;

/**
 * Spark-sort of the paper: random text, sorted by line. Lines are partitioned by their first letters (they are uniform, so no
 * sampling pass is needed), sorted within partitions, and the order and the number of lines are checked.
 *
 * <pre>
 *  SparkSort make FILE BYTES        writes the text
 *  SparkSort sort FILE MAPS REDUCES sorts it; prints "lines N"
 * </pre>
 */
public final class SparkSort {
  private static final int LINE_BYTES = 100;
  private static final int LETTERS = 64;

  private SparkSort() {}

  public static void main(String[] args) throws IOException {
    if (args[0].equals("make")) {
      make(Path.of(args[1]), Long.parseLong(args[2]));
    } else {
      sort(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]));
    }
  }

  private static void make(Path file, long bytes) throws IOException {
    SplittableRandom random = new SplittableRandom(42);
    byte[] line = new byte[LINE_BYTES];
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file), 1 << 20)) {
      for (long written = 0; written < bytes; written += LINE_BYTES) {
        for (int i = 0; i < LINE_BYTES - 1; i++) {
          line[i] = (byte) ('0' + random.nextInt(LETTERS));
        }
        line[LINE_BYTES - 1] = '\n';
        out.write(line);
      }
    }
  }

  private static void sort(String file, int maps, int reduces) {
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
      LongAccumulator lines = context.sc().longAccumulator();
      long start = System.nanoTime();
      context.textFile(file, maps).mapToPair(line -> new Tuple2<>(line, (Void) null))
          .repartitionAndSortWithinPartitions(new ByFirstLetters(reduces))
          .foreachPartition(records -> {
            String before = "";
            long count = 0;
            while (records.hasNext()) {
              String line = records.next()._1();
              if (line.compareTo(before) < 0) {
                throw new IllegalStateException("not sorted: " + line);
              }
              before = line;
              count++;
            }
            lines.add(count);
          });
      System.out.printf("lines %d seconds %.2f%n", lines.value(), (System.nanoTime() - start) / 1e9);
    }
  }

  private static final class ByFirstLetters extends Partitioner {
    private static final long serialVersionUID = 1L;
    private final int partitions;

    ByFirstLetters(int partitions) {
      this.partitions = partitions;
    }

    @Override
    public int numPartitions() {
      return partitions;
    }

    @Override
    public int getPartition(Object key) {
      String line = (String) key;
      int first = (line.charAt(0) - '0') * LETTERS * LETTERS + (line.charAt(1) - '0') * LETTERS + line.charAt(2) - '0';
      return (int) ((long) first * partitions / (LETTERS * LETTERS * LETTERS));
    }
  }
}
