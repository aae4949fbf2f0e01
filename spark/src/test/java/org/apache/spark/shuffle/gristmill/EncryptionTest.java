package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.storage.BlockManagerId;
import org.gristmill.core.Coordinator;
import org.gristmill.core.PartitionIndex;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Where Spark is told to encrypt, nobody who listens or looks at the disk reads a record: a spy stands between all executors, and every
 * file that they write is searched. The same without encryption shows that the spy would see.
 */
@Timeout(600)
class EncryptionTest {
  private static final String WORD = "a-word-that-nobody-may-read";
  private static final int PARTITIONS = 5;
  private static final byte[] HTTP = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] NO_LENGTH = new byte[1000];
  private static final byte RPC_REQUEST = 3; // in Spark's protocol
  private static final byte RPC_FAILURE = 5;

  @TempDir static Path keys;

  private static SparkConf plain() {
    return new SparkConf(false).set("spark.shuffle.compress", "false").set("spark.locality.wait", "0")
        .set("spark.gristmill.recovery", "resend"); // which writes more files
  }

  @Test
  void withoutEncryptionTheWordIsOnTheWireAndOnDisk() throws Exception {
    Seen seen = seen(plain(), executor -> { });
    assertTrue(seen.sent.contains(WORD) && seen.fetched.contains(WORD));
    assertTrue(seen.onDisk.stream().anyMatch(name -> name.endsWith(".store")), seen.onDisk.toString());
    assertTrue(seen.onDisk.stream().anyMatch(name -> name.endsWith(".kept")), seen.onDisk.toString());
  }

  /** With a secret, and AES on the wire and on disk. Somebody without the secret gets nothing. */
  @Test
  void withAuthenticationAndCryptoNothingIsInTheClear() throws Exception {
    nothingIn(seen(plain().set("spark.authenticate", "true").set("spark.authenticate.secret", "grain")
        .set("spark.network.crypto.enabled", "true").set("spark.io.encryption.enabled", "true"),
        EncryptionTest::assertRefused));
  }

  @Test
  void withSslNothingIsInTheClear() throws Exception {
    String store = keys.resolve("keys.p12").toString();
    assertEquals(0, new ProcessBuilder(System.getProperty("java.home") + "/bin/keytool", "-genkeypair", "-alias", "mill", "-keyalg", "EC",
        "-dname", "CN=localhost", "-validity", "2", "-storetype", "PKCS12", "-keystore", store, "-storepass", "a-password").inheritIO()
        .start().waitFor());
    SparkConf conf = plain().set("spark.authenticate", "true").set("spark.authenticate.secret", "grain")
        .set("spark.io.encryption.enabled", "true").set("spark.ssl.rpc.enabled", "true").set("spark.ssl.rpc.protocol", "TLSv1.3");
    for (String kind : new String[] {"key", "trust"}) {
      conf.set("spark.ssl.rpc." + kind + "Store", store).set("spark.ssl.rpc." + kind + "StorePassword", "a-password")
          .set("spark.ssl.rpc." + kind + "StoreType", "PKCS12");
    }
    nothingIn(seen(conf.set("spark.ssl.rpc.keyPassword", "a-password").set("spark.shuffle.compress", "true"), executor -> { }));
  }

  private static void nothingIn(Seen seen) {
    assertTrue(seen.sent.length() > 10_000 && seen.fetched.length() > 10_000, "it has seen the records, but could not read them");
    assertEquals(List.of(false, false, List.of()), List.of(seen.sent.contains(WORD), seen.fetched.contains(WORD), seen.onDisk));
  }

  /** Somebody who knows an executor's port. */
  private interface Intruder {
    void visits(BlockManagerId executor) throws IOException;
  }

  /** @param onDisk names of the files that have the word */
  private record Seen(String sent, String fetched, List<String> onDisk) {}

  /** Runs a job whose records go by a spy, after somebody has sent garbage to the port of each executor. */
  private static Seen seen(SparkConf conf, Intruder intruder) throws Exception {
    List<Spy> spies = new ArrayList<>();
    try (TestCluster cluster = new TestCluster(2, conf)) {
      cluster.awaitExecutors(2);
      List<Coordinator.Executor> watched = new ArrayList<>();
      for (BlockManagerId executor : CollectionConverters.asJava(SparkEnv.get().blockManager().master().getMemoryStatus().keys()
          .toList())) {
        if (!executor.isDriver()) {
          assertClosed(executor, HTTP);
          assertClosed(executor, NO_LENGTH);
          intruder.visits(executor);
          Spy spy = new Spy(executor.host(), executor.port());
          spies.add(spy);
          watched.add(new Coordinator.Executor(executor.executorId(), executor.host(), spy.port()));
        }
      }
      assertEquals(2, watched.size());
      watched.forEach(cluster.coordinator()::executorAdded);
      JavaPairRDD<Integer, Iterable<String>> words = words(cluster);
      assertEquals(expected(), letters(words));
      fetch(TestCluster.shuffle(words.rdd()).shuffleId(), watched);
      StringBuilder sent = new StringBuilder();
      StringBuilder fetched = new StringBuilder();
      spies.forEach(spy -> sent.append(spy.there()));
      spies.forEach(spy -> fetched.append(spy.back()));
      return new Seen(sent.toString(), fetched.toString(), cluster.filesWith(WORD));
    } finally {
      for (Spy spy : spies) {
        spy.close();
      }
    }
  }

  /** Reads all partitions from their homes, as a reduce task elsewhere does. */
  private static void fetch(int shuffle, List<Coordinator.Executor> homes) throws IOException {
    BlockTransferService service = SparkEnv.get().blockManager().blockTransferService();
    int segments = 0;
    for (Coordinator.Executor home : homes) {
      for (int p = 0; p < PARTITIONS; p++) {
        PartitionSource source = new PartitionSource.Remote(service, new Patience(120_000), home, shuffle, p);
        for (PartitionIndex.Entry e : source.index().entries()) {
          assertEquals(e.bytes(), source.await(source.read(e.offset(), e.bytes())).length);
          segments++;
        }
        assertThrows(IOException.class, () -> source.await(source.read(0, Integer.MAX_VALUE)));
      }
    }
    assertTrue(segments >= PARTITIONS);
  }

  private static void assertClosed(BlockManagerId executor, byte[] garbage) throws IOException {
    try (Socket socket = new Socket(executor.host(), executor.port())) {
      socket.setSoTimeout(120_000);
      socket.getOutputStream().write(garbage);
      while (socket.getInputStream().read() >= 0) {
        // it may say why
      }
    } catch (SocketException e) {
      // closed too, and what was sent had not all been read
    }
  }

  /** A request in Spark's own form, from somebody who has not said who he is: the answer is a failure. */
  private static void assertRefused(BlockManagerId executor) throws IOException {
    byte[] message = "no secret".getBytes(StandardCharsets.US_ASCII);
    ByteBuffer frame = ByteBuffer.allocate(8 + 1 + 8 + 4 + message.length);
    frame.putLong(frame.capacity()).put(RPC_REQUEST).putLong(1).putInt(message.length).put(message);
    try (Socket socket = new Socket(executor.host(), executor.port())) {
      socket.setSoTimeout(120_000);
      socket.getOutputStream().write(frame.array());
      DataInputStream answer = new DataInputStream(socket.getInputStream());
      answer.readLong(); // its length
      assertEquals(RPC_FAILURE, answer.readByte());
    }
  }

  private static JavaPairRDD<Integer, Iterable<String>> words(TestCluster cluster) {
    return cluster.context.parallelize(IntStream.range(0, 5000).boxed().toList(), 6)
        .mapToPair(i -> new Tuple2<>(i % 50, WORD + i)).groupByKey(PARTITIONS);
  }

  private static Map<Integer, Long> letters(JavaPairRDD<Integer, Iterable<String>> words) {
    return new TreeMap<>(words.mapValues(values -> {
      long letters = 0;
      for (String value : values) {
        letters += value.length();
      }
      return letters;
    }).collectAsMap());
  }

  private static Map<Integer, Long> expected() {
    Map<Integer, Long> letters = new TreeMap<>();
    for (int i = 0; i < 5000; i++) {
      letters.merge(i % 50, (long) (WORD + i).length(), Long::sum);
    }
    return letters;
  }
}
