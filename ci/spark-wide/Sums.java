import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * A program for spark-submit: writes into the file that it is given whether its sums were right, and which shuffle made
 * them.
 */
public final class Sums {
  private static final int ROWS = 200_000;
  private static final int KEYS = 97;

  private Sums() {}

  public static void main(String[] args) throws IOException {
    Map<Integer, Long> expected = new HashMap<>();
    List<Integer> numbers = new ArrayList<>();
    for (int n = 0; n < ROWS; n++) {
      numbers.add(n);
      expected.merge(n % KEYS, (long) n, Long::sum);
    }
    String said;
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
      Map<Integer, Long> found = context.parallelize(numbers, 16).mapToPair(n -> new Tuple2<>(n % KEYS, (long) n))
          .reduceByKey(Long::sum, 8).collectAsMap();
      said = (found.equals(expected) ? "right" : "WRONG: " + found) + " with " + SparkEnv.get().shuffleManager().getClass().getName();
    } catch (RuntimeException | Error e) {
      said = "WRONG: " + e;
    }
    Path written = Files.writeString(Path.of(args[0] + ".part"), said);
    Files.move(written, Path.of(args[0]));
  }
}
