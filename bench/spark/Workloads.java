import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;

/**
 * The jobs whose shuffles are compared.
 *
 * <pre>
 *  Workloads text FILE BYTES                          writes random text: lines of 100 bytes
 *  Workloads NAME MAPS PARTITIONS BYTES [FILE]        runs a job; prints "answer N seconds S"
 * </pre>
 *
 * {@code sparksort} is the one of OPS and reads the text; {@code wordcount}, {@code sort}, {@code terasort}, {@code
 * join}, {@code aggregation} and {@code pagerank} are made like those of HiBench, on data that the maps generate from
 * seeds (about BYTES of it); {@code tiny} is many shuffles of a few kilobytes; {@code floor} has the tasks of {@code
 * sparksort}, reads the text and shuffles nothing. The answer does not depend on the order of records, nor on which
 * shuffle was used.
 */
public final class Workloads {
  private static final int LINE_BYTES = 100;
  private static final int LETTERS = 64;
  private static final int WORDS = 200_000;
  private static final int LINKS_PER_PAGE = 10;
  private static final int RANK_ROUNDS = 3;
  private static final int TINY_ROUNDS = 30;

  private final JavaSparkContext context;
  private final int maps;
  private final int partitions;
  private final long bytes;

  private Workloads(JavaSparkContext context, int maps, int partitions, long bytes) {
    this.context = context;
    this.maps = maps;
    this.partitions = partitions;
    this.bytes = bytes;
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    if (args[0].equals("text")) {
      writeText(Path.of(args[1]), Long.parseLong(args[2]));
      return;
    }
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
      Workloads jobs = new Workloads(context, Integer.parseInt(args[1]), Integer.parseInt(args[2]), Long.parseLong(args[3]));
      while (!context.sc().schedulerBackend().isReady()) {
        Thread.sleep(10); // until all executors are there
      }
      long start = System.nanoTime();
      long answer = switch (args[0]) {
        case "sparksort" -> jobs.sparkSort(args[4]);
        case "floor" -> jobs.floor(args[4]);
        case "wordcount" -> jobs.wordCount();
        case "sort" -> jobs.sort();
        case "terasort" -> jobs.teraSort();
        case "join" -> jobs.join();
        case "aggregation" -> jobs.aggregation();
        case "pagerank" -> jobs.pageRank();
        case "tiny" -> jobs.tiny();
        default -> throw new IllegalArgumentException("no job is called " + args[0]);
      };
      System.out.printf("answer %d seconds %.2f%n", answer, (System.nanoTime() - start) / 1e9);
    }
  }

  private static void writeText(Path file, long bytes) throws IOException {
    SplittableRandom random = new SplittableRandom(42);
    byte[] line = new byte[LINE_BYTES];
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file), 1 << 20)) {
      for (long written = 0; written < bytes; written += LINE_BYTES) {
        for (int i = 0; i < LINE_BYTES - 1; i++) {
          line[i] = (byte) letter(random);
        }
        line[LINE_BYTES - 1] = '\n';
        out.write(line);
      }
    }
  }

  /** Counts lines, partitioned by their first letters (uniform, so no pass samples them) and sorted. */
  private long sparkSort(String file) {
    return countSorted(context.textFile(file, maps).mapToPair(line -> new Tuple2<>(line, (Void) null))
        .repartitionAndSortWithinPartitions(new Ranges<String>(partitions, Workloads::byFirstLetters)));
  }

  /** Runs the tasks of {@link #sparkSort} without their work: a stage reads the text and drops it, one does nothing. */
  private long floor(String file) {
    LongAccumulator lines = context.sc().longAccumulator();
    context.textFile(file, maps).mapToPair(line -> new Tuple2<>(line, (Void) null))
        .foreachPartition(partition -> lines.add(count(partition)));
    context.parallelize(IntStream.range(0, partitions).boxed().toList(), partitions).foreachPartition(partition -> lines.add(0));
    return lines.value();
  }

  private static long count(Iterator<?> records) {
    long count = 0;
    for (; records.hasNext(); records.next()) {
      count++;
    }
    return count;
  }

  /** Words whose frequency goes with 1 / rank, counted with map-side combine; sum of rank times count. */
  private long wordCount() {
    return generate(bytes / 8, random -> "word-" + zipf(random, WORDS)).mapToPair(word -> new Tuple2<>(word, 1L))
        .reduceByKey(Long::sum, partitions)
        .map(count -> Long.parseLong(count._1().substring(5)) * count._2()).reduce(Long::sum);
  }

  /** Text by text, with Spark's range partitioner, which samples first. */
  private long sort() {
    JavaPairRDD<String, String> pairs = generate(bytes / LINE_BYTES, random -> text(random, LINE_BYTES))
        .mapToPair(line -> new Tuple2<>(line.substring(0, LINE_BYTES / 2), line.substring(LINE_BYTES / 2)));
    return countSorted(pairs.sortByKey(true, partitions));
  }

  /** Uniform keys of 8 bytes with values of 90. */
  private long teraSort() {
    JavaPairRDD<Long, byte[]> pairs = generate(bytes / LINE_BYTES, random -> new Tuple2<>(random.nextLong(), letters(random, 90)))
        .mapToPair(pair -> pair);
    return countSorted(pairs.repartitionAndSortWithinPartitions(new Ranges<Long>(partitions, Workloads::byHighBits)));
  }

  /** Visits with the ranks of the pages they went to: revenue and average rank for each address. */
  private long join() {
    SparkSession sql = tables();
    Row row = sql.sql("select sum(revenue * 7 + rank), count(*) from (select ip, sum(revenue) revenue, sum(rank) div count(*) rank"
        + " from visits join pages on visits.page = pages.page group by ip)").first();
    return row.getLong(0) ^ row.getLong(1);
  }

  /** Revenue of visits for each address. */
  private long aggregation() {
    Row row = tables().sql("select sum(hash(ip) * revenue), count(*) from (select ip, sum(revenue) revenue from visits group by ip)")
        .first();
    return row.getLong(0) ^ row.getLong(1);
  }

  /** Visits are about 100 bytes when they are shuffled whole; there is a page for every ten of them. */
  private SparkSession tables() {
    SparkSession sql = SparkSession.builder().config("spark.sql.shuffle.partitions", partitions)
        .config("spark.sql.autoBroadcastJoinThreshold", -1).getOrCreate();
    long visits = bytes / LINE_BYTES;
    long pages = Math.max(1, visits / 10);
    sql.range(0, visits, 1, maps).selectExpr("concat('url-', pmod(hash(id, 1), " + pages + ")) page",
        "concat_ws('.', pmod(hash(id, 2), 256), pmod(hash(id, 3), 256), pmod(hash(id, 4), 4)) ip", "pmod(hash(id, 5), 1000) revenue")
        .createOrReplaceTempView("visits");
    sql.range(0, pages, 1, maps).selectExpr("concat('url-', id) page", "pmod(hash(id, 6), 100) rank").createOrReplaceTempView("pages");
    return sql;
  }

  /** Ranks in millionths, so that sums do not depend on their order. */
  private long pageRank() {
    int pages = (int) (bytes / (16 * LINKS_PER_PAGE));
    JavaPairRDD<Integer, Iterable<Integer>> links = generate((long) pages * LINKS_PER_PAGE, random ->
        new Tuple2<>(random.nextInt(pages), zipf(random, pages))).mapToPair(link -> link).groupByKey(partitions).cache();
    JavaPairRDD<Integer, Long> ranks = links.mapValues(targets -> 1_000_000L);
    for (int round = 0; round < RANK_ROUNDS; round++) {
      ranks = links.join(ranks, partitions).values().flatMapToPair(page -> {
        List<Tuple2<Integer, Long>> shares = new ArrayList<>();
        page._1().forEach(target -> shares.add(new Tuple2<>(target, page._2())));
        return shares.stream().map(share -> new Tuple2<>(share._1(), share._2() / shares.size())).iterator();
      }).reduceByKey(Long::sum, partitions).mapValues(sum -> 150_000 + sum * 85 / 100);
    }
    return ranks.map(rank -> rank._1() * 31 ^ rank._2()).reduce(Long::sum);
  }

  /** Many tiny shuffles: the cost of one, where there is nothing to gain. */
  private long tiny() {
    long sum = 0;
    for (int round = 0; round < TINY_ROUNDS; round++) {
      sum += generate(maps * 100L, random -> new Tuple2<>(random.nextInt(1000), 1)).mapToPair(pair -> pair)
          .groupByKey(partitions).count();
    }
    return sum;
  }

  /** About {@code records} records, made by the maps. */
  private <T> JavaRDD<T> generate(long records, Generator<T> generator) {
    long each = records / maps;
    return context.parallelize(IntStream.range(0, maps).boxed().toList(), maps).flatMap(map -> {
      SplittableRandom random = new SplittableRandom(map);
      return LongStream.range(0, each).mapToObj(record -> generator.next(random)).iterator();
    });
  }

  private interface Generator<T> extends Serializable {
    T next(SplittableRandom random);
  }

  private <K extends Comparable<? super K>> long countSorted(JavaPairRDD<K, ?> sorted) {
    LongAccumulator records = context.sc().longAccumulator();
    sorted.foreachPartition(partition -> records.add(countSorted(partition)));
    return records.value();
  }

  private static <K extends Comparable<? super K>> long countSorted(Iterator<? extends Tuple2<K, ?>> records) {
    long count = 0;
    for (K before = null; records.hasNext(); count++) {
      K key = records.next()._1();
      if (before != null && key.compareTo(before) < 0) {
        throw new IllegalStateException("not sorted: " + key);
      }
      before = key;
    }
    return count;
  }

  private static char letter(SplittableRandom random) {
    return (char) ('0' + random.nextInt(LETTERS));
  }

  private static byte[] letters(SplittableRandom random, int length) {
    byte[] letters = new byte[length];
    for (int i = 0; i < length; i++) {
      letters[i] = (byte) letter(random);
    }
    return letters;
  }

  private static String text(SplittableRandom random, int length) {
    return new String(letters(random, length), StandardCharsets.ISO_8859_1);
  }

  /** A rank below {@code ranks}, with a probability that goes with about 1 / (rank + 1). */
  private static int zipf(SplittableRandom random, int ranks) {
    return (int) Math.exp(random.nextDouble() * Math.log(ranks));
  }

  /** The partition of a line, of which there are as many for each three first letters. */
  private static int byFirstLetters(String line, int partitions) {
    int first = (line.charAt(0) - '0') * LETTERS * LETTERS + (line.charAt(1) - '0') * LETTERS + line.charAt(2) - '0';
    return (int) ((long) first * partitions / (LETTERS * LETTERS * LETTERS));
  }

  private static int byHighBits(long key, int partitions) {
    long high = key >>> 32 ^ 1L << 31; // in the order of the keys, which are signed
    return (int) (high * partitions >>> 32);
  }

  /** Partitions that are ranges of keys. */
  private static final class Ranges<K> extends Partitioner {
    private static final long serialVersionUID = 1L;
    private final int partitions;
    private final RangeOf<K> rangeOf;

    Ranges(int partitions, RangeOf<K> rangeOf) {
      this.partitions = partitions;
      this.rangeOf = rangeOf;
    }

    @Override
    public int numPartitions() {
      return partitions;
    }

    @Override
    @SuppressWarnings("unchecked") // the pairs that are partitioned have keys of this type
    public int getPartition(Object key) {
      return rangeOf.number((K) key, partitions);
    }
  }

  private interface RangeOf<K> extends Serializable {
    int number(K key, int partitions);
  }
}
