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
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManagerId;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.read.FetchTimeout;
import org.gristmill.core.read.PartitionSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.mockito.Mockito;
import scala.jdk.javaapi.CollectionConverters;

/**
 * With encryption, no record can be read on the network or on disk: a proxy records what all executors send each other,
 * and every file that they write is searched. The same job without encryption shows that the search finds the word.
 */
@Timeout(600)
class EncryptionTest {
  private static final String WORD = "a-word-that-must-stay-secret";
  private static final WordJob JOB = new WordJob(WORD);
  private static final byte[] HTTP = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] NO_LENGTH = new byte[1000];
  private static final byte RPC_REQUEST = 3; // in Spark's protocol
  private static final byte RPC_FAILURE = 5;

  @TempDir
  static Path keys;

  private static SparkConf plain() {
    return new SparkConf(false).set("spark.shuffle.compress", "false").set("spark.locality.wait", "0")
        .set("spark.gristmill.recovery", "resend"); // which writes more files
  }

  @Test
  void withoutEncryptionTheWordIsOnTheWireAndOnDisk() throws Exception {
    Seen seen = seen(plain(), executor -> {});
    assertTrue(seen.sent.contains(WORD) && seen.fetched.contains(WORD));
    assertTrue(seen.onDisk.stream().anyMatch(name -> name.endsWith(".store")), seen.onDisk.toString());
    assertTrue(seen.onDisk.stream().anyMatch(name -> name.endsWith(".sent")), seen.onDisk.toString());
  }

  /** With a secret, and AES on the wire and on disk. A client without the secret gets nothing. */
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
    nothingIn(seen(conf.set("spark.ssl.rpc.keyPassword", "a-password").set("spark.shuffle.compress", "true"), executor -> {}));
  }

  private static void nothingIn(Seen seen) {
    assertTrue(seen.sent.length() > 10_000 && seen.fetched.length() > 10_000, "it has seen the records, but could not read them");
    assertEquals(List.of(false, false, List.of()), List.of(seen.sent.contains(WORD), seen.fetched.contains(WORD), seen.onDisk));
  }

  /** A client that knows an executor's port. */
  private interface Intruder {
    void visits(BlockManagerId executor) throws IOException;
  }

  /** @param onDisk names of the files that have the word */
  private record Seen(String sent, String fetched, List<String> onDisk) {}

  /** Runs a job whose records pass the proxies, after garbage was sent to the port of each executor. */
  private static Seen seen(SparkConf conf, Intruder intruder) throws Exception {
    List<RecordingProxy> proxies = new ArrayList<>();
    try (TestCluster cluster = new TestCluster(2, conf)) {
      cluster.awaitExecutors(2);
      List<Executor> watched = new ArrayList<>();
      for (BlockManagerId executor : CollectionConverters.asJava(SparkEnv.get().blockManager().master().getMemoryStatus().keys()
          .toList())) {
        if (!executor.isDriver()) {
          assertClosed(executor, HTTP);
          assertClosed(executor, NO_LENGTH);
          intruder.visits(executor);
          RecordingProxy proxy = new RecordingProxy(executor.host(), executor.port());
          proxies.add(proxy);
          watched.add(new Executor(executor.executorId(), executor.host(), proxy.port()));
        }
      }
      assertEquals(2, watched.size());
      watched.forEach(cluster.coordinator()::executorAdded);
      JavaPairRDD<Integer, Iterable<String>> words = JOB.groups(cluster);
      assertEquals(JOB.expected(), JOB.letters(words));
      fetch(TestCluster.shuffle(words.rdd()).shuffleId(), watched);
      StringBuilder sent = new StringBuilder();
      StringBuilder fetched = new StringBuilder();
      proxies.forEach(proxy -> sent.append(proxy.there()));
      proxies.forEach(proxy -> fetched.append(proxy.back()));
      return new Seen(sent.toString(), fetched.toString(), cluster.filesWith(WORD));
    } finally {
      for (RecordingProxy proxy : proxies) {
        proxy.close();
      }
    }
  }

  /** Reads all partitions from their homes, as a reduce task elsewhere does. */
  private static void fetch(int shuffle, List<Executor> homes) throws IOException {
    BlockTransferService service = SparkEnv.get().blockManager().blockTransferService();
    ShuffleReadMetricsReporter metrics = Mockito.mock(ShuffleReadMetricsReporter.class);
    int segments = 0;
    for (Executor home : homes) {
      for (int p = 0; p < WordJob.PARTITIONS; p++) {
        PartitionSource source = new RemoteSource(service, new FetchTimeout(120_000), metrics, home, shuffle, p);
        for (PartitionIndex.Entry e : source.index().entries()) {
          assertEquals(e.bytes(), source.await(source.read(e.offset(), e.bytes())).length);
          segments++;
        }
        assertThrows(IOException.class, () -> source.await(source.read(0, Integer.MAX_VALUE)));
      }
    }
    assertTrue(segments >= WordJob.PARTITIONS);
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

  /** A request in Spark's own form, without authentication: the answer is a failure. */
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
}
