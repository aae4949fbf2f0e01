package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.serializer.JavaSerializer;
import org.gristmill.spark.node.TaskMemory;
import org.gristmill.spark.reader.RecordSorter;
import org.gristmill.spark.reader.SpillFiles;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A sorter in a task, with the memory that other operators of the task leave. */
class RecordSorterTest {
  private static final int RECORDS = 20_000;
  private static TestCluster cluster;
  private static TaskMemory memory; // of the last sorter

  @BeforeAll
  static void start() {
    cluster = new TestCluster("local[1]", new SparkConf(false));
  }

  @AfterAll
  static void stop() {
    cluster.close();
  }

  /** Another operator of the task; it takes all the memory there is and gives none back. */
  private static final class Greedy extends MemoryConsumer {
    Greedy() {
      super(TaskContext.get().taskMemoryManager(), MemoryMode.ON_HEAP);
    }

    void takeAll() {
      while (acquireMemory(1L << 40) > 0) {
        continue; // until no other operator gives any more
      }
    }

    @Override
    public long spill(long size, MemoryConsumer trigger) {
      return 0;
    }
  }

  private interface Task extends java.io.Serializable {
    List<Long> run() throws Exception;
  }

  private static List<Long> inTask(Task task) {
    return cluster.context.parallelize(List.of(1), 1).map(one -> task.run()).collect().get(0);
  }

  private static List<Product2<Integer, Integer>> records() {
    Random random = new Random(3);
    List<Product2<Integer, Integer>> records = new ArrayList<>();
    for (int i = 0; i < RECORDS; i++) {
      records.add(new Tuple2<>(random.nextInt(1000), i));
    }
    return records;
  }

  private static RecordSorter<Integer, Integer> sorter() {
    SpillFiles files = new SpillFile(SparkEnv.get().blockManager(), new JavaSerializer(SparkEnv.get().conf()).newInstance());
    TaskMemory.Lender lender = SparkTaskMemory.of(TaskContext.get());
    return new RecordSorter<>(TaskContext.get(), spill -> memory = lender.lend(spill), files,
        new SparkReader.Metrics(new TempShuffleReadMetrics(), TaskContext.get()));
  }

  private static Iterator<Product2<Integer, Integer>> unsorted() {
    return CollectionConverters.asScala(records().iterator());
  }

  /** Both in one number, for records whose order is to be compared. */
  private static long number(Product2<Integer, Integer> record) {
    return record._1() * 1_000_000L + record._2();
  }

  private static List<Long> numbers(Iterator<Product2<Integer, Integer>> records) {
    List<Long> numbers = new ArrayList<>();
    while (records.hasNext()) {
      numbers.add(number(records.next()));
    }
    return numbers;
  }

  /** The order is stable, and records were numbered as they came: so it is that of the numbers. */
  private static List<Long> expected() {
    return records().stream().map(RecordSorterTest::number).sorted().toList();
  }

  @Test
  void recordsThatFitIntoMemoryAreSortedThere() {
    assertEquals(expected(), inTask(() -> {
      RecordSorter<Integer, Integer> sorter = sorter();
      Iterator<Product2<Integer, Integer>> sorted = sorter.sort(unsorted(), Comparator.naturalOrder(), all -> {
        throw new IllegalStateException("there is memory");
      });
      assertTrue(memory.used() > RECORDS * 50L, "records of two numbers were counted as " + memory.used() + " bytes");
      List<Long> numbers = numbers(sorted);
      assertEquals(0, memory.used());
      return numbers;
    }));
  }

  @Test
  void recordsThatDoNotFitAreHandedOnInTheirOrder() {
    assertEquals(records().stream().map(RecordSorterTest::number).toList(), inTask(() -> {
      Greedy greedy = new Greedy();
      RecordSorter<Integer, Integer> sorter = sorter();
      Iterator<Product2<Integer, Integer>> from = unsorted().map(record -> {
        if (record._2() == RECORDS / 3) {
          greedy.takeAll();
        }
        return record;
      });
      List<Long> numbers = numbers(sorter.sort(from, Comparator.naturalOrder(), all -> {
        assertEquals(0, memory.used());
        return all;
      }));
      greedy.freeMemory(greedy.getUsed());
      return numbers;
    }));
  }

  @Test
  void remainingRecordsGoToAFileWhenAnotherOperatorNeedsTheMemory() {
    assertEquals(expected(), inTask(() -> {
      RecordSorter<Integer, Integer> sorter = sorter();
      Greedy greedy = new Greedy();
      Iterator<Product2<Integer, Integer>> sorted = sorter.sort(unsorted(), Comparator.naturalOrder(), all -> all);
      List<Long> numbers = new ArrayList<>();
      for (int i = 0; i < RECORDS / 2; i++) {
        numbers.add(number(sorted.next()));
      }
      greedy.takeAll();
      assertEquals(0, memory.used());
      assertTrue(TaskContext.get().taskMetrics().diskBytesSpilled() > 0);
      numbers.addAll(numbers(sorted));
      greedy.freeMemory(greedy.getUsed());
      return numbers;
    }));
  }
}
