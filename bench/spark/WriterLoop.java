package org.gristmill.spark.writer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.HashPartitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.unsafe.types.UTF8String;
import org.gristmill.spark.node.TaskMemory;
import scala.Option;
import scala.Tuple2;

/**
 * The loop of a map task's writer alone: records in, segments out, nothing stored. Prints the nanoseconds of
 * processor time per record, the median of the rounds. Compile it together with the classes of the plugin, whose
 * package it is in, and run
 *   java -cp CLASSES:SPARK_JARS org.gristmill.spark.writer.WriterLoop row2,row9,kryoLong,kryoText,javaPair ROUNDS
 */
public final class WriterLoop {
  private static final int RECORDS = 100_000;
  private static final int PARTITIONS = 64;

  public static void main(String[] args) throws Exception {
    JavaSparkContext context = new JavaSparkContext(new SparkConf().setMaster("local[1]").setAppName("loop").set("spark.ui.enabled", "false"));
    for (String kind : args[0].split(",")) {
      int rounds = Integer.parseInt(args[1]);
      Serializer serializer = kind.startsWith("row") ? new UnsafeRowSerializer(kind.equals("row2") ? 2 : 9, null)
          : kind.startsWith("kryo") ? new KryoSerializer(context.getConf()) : new JavaSerializer(context.getConf());
      Object dependency = dependency(context, serializer);
      Object[][] records = records(kind);
      context.parallelize(List.of(1), 1).foreach(new Loop(dependency, serializer, records, rounds, kind));
    }
    context.close();
  }

  private static Object dependency(JavaSparkContext context, Serializer serializer) {
    var rdd = context.parallelize(List.of(1), 1).mapToPair(i -> new Tuple2<>(i, i)).partitionBy(new HashPartitioner(PARTITIONS)).rdd();
    ((org.apache.spark.rdd.ShuffledRDD<?, ?, ?>) rdd).setSerializer(serializer);
    return rdd.dependencies().head();
  }

  private static Object[][] records(String kind) {
    Random random = new Random(1);
    Object[][] records = new Object[RECORDS][];
    for (int i = 0; i < RECORDS; i++) {
      int key = random.nextInt(1 << 20);
      int partition = key % PARTITIONS;
      records[i] = switch (kind) {
        case "row2" -> new Object[] {partition, row(2, key, random)};
        case "row9" -> new Object[] {partition, row(9, key, random)};
        case "kryoLong" -> new Object[] {(long) key, random.nextLong()};
        case "kryoText" -> new Object[] {"user-" + key, new Tuple2<>(random.nextDouble(), 1L)};
        case "kryoRecord" -> new Object[] {"k" + key + random.nextLong(), "x".repeat(80)};
        default -> new Object[] {key, random.nextDouble()};
      };
    }
    return records;
  }

  private static UnsafeRow row(int columns, int key, Random random) {
    UnsafeRowWriter writer = new UnsafeRowWriter(columns, 64);
    writer.resetRowWriter();
    writer.write(0, (long) key);
    writer.write(1, random.nextDouble());
    for (int c = 2; c < columns; c++) {
      if (c == 4) {
        writer.write(c, UTF8String.fromString("name of " + key));
      } else {
        writer.write(c, (long) random.nextInt());
      }
    }
    return writer.getRow().copy();
  }

  /** Runs in the one process there is, so nothing is really serialised. */
  private static final class Loop implements org.apache.spark.api.java.function.VoidFunction<Integer> {
    private static Object dependency;
    private static Serializer serializer;
    private static Object[][] records;
    private static int rounds;
    private static String kind;

    Loop(Object d, Serializer s, Object[][] r, int n, String k) {
      dependency = d;
      serializer = s;
      records = r;
      rounds = n;
      kind = k;
    }

    @Override
    public void call(Integer ignored) throws Exception {
      double[] nanos = new double[rounds];
      for (int round = 0; round < rounds + 5; round++) {
        PartitionBuffers buffers = new PartitionBuffers((ShuffleDependency<?, ?, ?>) dependency, serializer.newInstance(),
            serializer.supportsRelocationOfSerializedObjects(), TaskContext.get(), spill -> new Memory(), 256 << 10, 32 << 20,
            new AtomicInteger(64 << 10), new Lz4Blocks(32 << 10), (partition, segment) -> {}, new NoMetrics());
        long start = java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        for (Object[] record : records) {
          Object key = record[0];
          int partition = key instanceof Integer i && kind.startsWith("row") ? i : (key.hashCode() & 0x7fffffff) % PARTITIONS;
          buffers.write(partition, key, record[1], true);
        }
        buffers.finish();
        if (round >= 5) {
          nanos[round - 5] = (java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - start) / (double) records.length;
        }
      }
      Arrays.sort(nanos);
      System.out.printf("%s %.1f%n", kind, nanos[rounds / 2]);
    }
  }

  private static final class Memory implements TaskMemory {
    private long used;

    @Override
    public long acquire(long bytes) {
      used += bytes;
      return bytes;
    }

    @Override
    public void free(long bytes) {
      used -= bytes;
    }

    @Override
    public long used() {
      return used;
    }
  }

  private static final class NoMetrics implements WriteMetrics {
    @Override
    public void bytesWritten(long bytes) {}

    @Override
    public void recordsWritten(long records) {}

    @Override
    public void waited(long nanos) {}

    @Override
    public void peakMemory(long bytes) {}
  }
}
