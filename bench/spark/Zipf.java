import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * A shuffle whose partition p has a share of the records that goes with 1 / (p + 1): {@code Zipf MAPS PARTITIONS
 * RECORDS_PER_MAP}. How well partitions were predicted and placed is in the driver's log.
 */
public final class Zipf {
  private Zipf() {}

  public static void main(String[] args) {
    int maps = Integer.parseInt(args[0]);
    int partitions = Integer.parseInt(args[1]);
    int records = Integer.parseInt(args[2]);
    double[] share = IntStream.range(0, partitions).mapToDouble(p -> 1.0 / (p + 1)).toArray();
    for (int p = 1; p < partitions; p++) {
      share[p] += share[p - 1];
    }
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
      long read = context.parallelize(IntStream.range(0, maps).boxed().toList(), maps).flatMapToPair(map -> {
        Random random = new Random(map);
        List<Tuple2<Integer, Long>> made = new ArrayList<>();
        for (int r = 0; r < records; r++) {
          double at = random.nextDouble() * share[partitions - 1];
          int p = 0;
          while (share[p] < at) {
            p++;
          }
          made.add(new Tuple2<>(p, random.nextLong()));
        }
        return made.iterator();
      }).partitionBy(new HashPartitioner(partitions)).count();
      System.out.println("records " + read);
    }
  }
}
