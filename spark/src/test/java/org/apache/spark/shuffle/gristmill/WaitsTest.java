package org.apache.spark.shuffle.gristmill;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.storage.BlockManagerId;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Message;
import org.gristmill.core.format.Segment;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Settings;
import org.gristmill.core.read.FetchTimeout;
import org.gristmill.core.read.PartitionSource;
import org.gristmill.spark.node.ExecutorNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.mockito.ArgumentCaptor;
import org.mockito.Mockito;
import scala.PartialFunction;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

/** Every wait of the plugin has an end, and an exception of one of its threads reaches the threads that wait for it. */
@Timeout(600)
class WaitsTest {
  private static final Executor HOME = new Executor("7", "localhost", 1);

  @SuppressWarnings("unchecked")
  private static <T, E extends Throwable> T sneak(Throwable e) throws E {
    throw (E) e;
  }

  // Tasks that wait for what another executor has:

  /** A reader whose home never answered waited for the index of its partition for ever. */
  @Test
  void aHomeThatSaysNothingIsNotWaitedFor() {
    PartitionSource source = remote(listener -> {}, 50);
    IOException index = assertThrows(IOException.class, source::index);
    assertTrue(index.getMessage().contains("executor 7") && index.getMessage().contains("spark.gristmill.timeout"), index.toString());
    IOException piece = assertThrows(IOException.class, () -> source.await(source.read(0, 10)));
    assertTrue(piece.getMessage().contains("a piece of partition 3"), piece.toString());
  }

  /** Where many read from one home a piece may take longer than the time-out, but not for ever. */
  @Test
  void aHomeThatAnswersOthersIsWaitedForLongerButNotForEver() {
    FetchTimeout limit = new FetchTimeout(300);
    CompletableFuture<String> never = new CompletableFuture<>() {
      @Override
      public String get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        try {
          return super.get(timeout, unit);
        } finally {
          limit.heard("7"); // another task received a piece meanwhile
        }
      }
    };
    long start = System.nanoTime();
    assertThrows(IOException.class, () -> limit.await(never, "7", "it"));
    assertTrue(System.nanoTime() - start >= 3_000_000_000L);
  }

  /**
   * An error while a piece was taken over, or in Spark's own code, went to Spark's log, and the reader waited for ever.
   */
  @Test
  void anyExceptionOfAFetchReachesTheReader() {
    for (Throwable thrown : List.of(new IllegalStateException("a mistake"), new OutOfMemoryError("no direct memory"))) {
      ManagedBuffer broken = Mockito.mock(ManagedBuffer.class, call -> sneak(thrown));
      List<PartitionSource> sources = List.of(remote(listener -> sneak(thrown), 60_000),
          remote(listener -> listener.onBlockFetchSuccess("", broken), 60_000),
          remote(listener -> listener.onBlockFetchFailure("", thrown), 60_000));
      for (PartitionSource source : sources) {
        assertTrue(assertThrows(IOException.class, source::index).getMessage().contains(thrown.getMessage()));
        assertTrue(assertThrows(IOException.class, () -> source.await(source.read(0, 1))).getMessage().contains(thrown.getMessage()));
      }
    }
  }

  /** "Remote Requests Duration" was always 0, as if nothing were read from other executors. */
  @Test
  void theTimeOfARequestIsCounted() throws IOException {
    ShuffleReadMetricsReporter metrics = Mockito.mock(ShuffleReadMetricsReporter.class);
    PartitionSource source = remote(listener -> {
      for (long start = System.nanoTime(); System.nanoTime() - start < 5_000_000;) {
        Thread.onSpinWait();
      }
      listener.onBlockFetchSuccess("", new NioManagedBuffer(ByteBuffer.allocate(10)));
    }, 60_000, metrics);
    source.await(source.read(0, 10));
    Mockito.verify(metrics).incRemoteReqsDuration(Mockito.longThat(milliseconds -> milliseconds > 0));
  }

  @Test
  void aTaskThatIsKilledWhileItWaitsEnds() {
    Thread.currentThread().interrupt();
    assertThrows(IOException.class, () -> new FetchTimeout(60_000).await(new CompletableFuture<>(), "7", "it"));
    assertTrue(Thread.interrupted());
  }

  private static PartitionSource remote(Consumer<BlockFetchingListener> fetch, long timeoutMs) {
    return remote(fetch, timeoutMs, Mockito.mock(ShuffleReadMetricsReporter.class));
  }

  private static PartitionSource remote(Consumer<BlockFetchingListener> fetch, long timeoutMs, ShuffleReadMetricsReporter metrics) {
    BlockTransferService service = Mockito.mock(BlockTransferService.class);
    Mockito.doAnswer(call -> {
      fetch.accept(call.getArgument(4));
      return null;
    }).when(service).fetchBlocks(Mockito.any(), Mockito.anyInt(), Mockito.any(), Mockito.any(), Mockito.any(), Mockito.any());
    return new RemoteSource(service, new FetchTimeout(timeoutMs), metrics, HOME, 1, 3);
  }

  // Messages that cannot be answered:

  /** The asking thread waited until its time-out, or for ever if the answer was asynchronous. */
  @Test
  void aMessageThatCannotBeAnsweredGetsTheReasonAsItsAnswer() {
    Error error = new NoClassDefFoundError("a/Missing");
    RuntimeException mistake = new IllegalStateException("a mistake");
    for (Rpc.Answerer answerer : List.<Rpc.Answerer>of(m -> sneak(error), m -> CompletableFuture.failedFuture(error))) {
      assertEquals("java.lang.NoClassDefFoundError: a/Missing", failure(answerer).getMessage());
    }
    for (Rpc.Answerer answerer : List.<Rpc.Answerer>of(m -> sneak(mistake), m -> CompletableFuture.failedFuture(mistake))) {
      assertEquals("a mistake", failure(answerer).getMessage());
    }
    Rpc.handling(m -> sneak(error)).apply("it is logged, and Spark's dispatcher goes on");
  }

  private static Throwable failure(Rpc.Answerer answerer) {
    RpcCallContext context = Mockito.mock(RpcCallContext.class);
    ArgumentCaptor<Throwable> failure = ArgumentCaptor.forClass(Throwable.class);
    Rpc.answering(context, answerer).apply("a message");
    Mockito.verify(context).sendFailure(failure.capture());
    Mockito.verifyNoMoreInteractions(context);
    assertNull(failure.getValue().getCause(), "an error among the causes would end the executor");
    return failure.getValue();
  }

  /**
   * Spark reports exceptions of the receiver of a parcel to the sender, but not errors: the sender's pages were never
   * free again.
   */
  @Test
  void anErrorWhileAParcelIsTakenInReachesItsSender() {
    GristmillResolver resolver = new GristmillResolver(new SparkConf(false), new Settings(key -> null),
        () -> sneak(new StackOverflowError("too deep")), null);
    StreamCallbackWithID parcel = resolver.putShuffleBlockAsStream(BlockNames.parcel(1, 1, 0), null);
    assertTrue(assertThrows(IOException.class, () -> parcel.onComplete("")).getMessage().contains("too deep"));
  }

  // An executor's node whose driver, disks and threads misbehave:

  /** Answers what a test has queued, and then that all is well. A queued null: no answer at all. */
  private static final class Driver implements ThreadSafeRpcEndpoint {
    final BlockingQueue<Message> asked = new LinkedBlockingQueue<>();
    final Queue<Optional<Object>> answers = new ConcurrentLinkedQueue<>();

    @Override
    public RpcEnv rpcEnv() {
      return SparkEnv.get().rpcEnv();
    }

    @Override
    public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
      return Rpc.handling(m -> {
        asked.add(Message.decode((byte[]) (m instanceof Tuple2<?, ?> pair ? pair._1() : m)));
        Optional<Object> answer = answers.isEmpty() ? Optional.of(new Message.Done(true)) : answers.remove();
        if (answer.isPresent() && answer.get() instanceof Throwable thrown) {
          context.sendFailure(thrown);
        } else if (answer.isPresent()) {
          context.reply(Message.encode((Message) answer.get()));
        }
      });
    }

    void answers(Object... queued) {
      answers.addAll(Arrays.stream(queued).map(Optional::ofNullable).toList());
    }
  }

  private interface Script {
    void run(SparkEnv env, Driver driver) throws Exception;
  }

  private static void withDriver(Script script) throws Exception {
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf(false).setMaster("local[1]").setAppName("waits")
        .set("spark.ui.enabled", "false"))) {
      Driver driver = new Driver();
      SparkEnv.get().rpcEnv().setupEndpoint(Rpc.DRIVER, driver);
      script.run(SparkEnv.get(), driver);
    }
  }

  private static ExecutorNode node(SparkEnv env, long timeoutMs, Map<String, String> settings) {
    return ExecutorNode.started(new ExecutorEndpoint(env), new Settings(settings::get), timeoutMs);
  }

  private static byte[] segment(int shuffle, int partition, long attempt) {
    byte[] bytes = new byte[Segment.HEADER_BYTES + 1000];
    Segment.seal(bytes, bytes.length, shuffle, partition, 0, attempt, 0, true, 1);
    return bytes;
  }

  /** The plan that makes an executor the home of these partitions. */
  private static Message.Planned planned(SparkEnv env, int shuffle, int epoch, int partitions, Integer... refill) {
    BlockManagerId here = env.blockManager().blockManagerId();
    String[] homes = new String[partitions];
    Arrays.fill(homes, here.executorId());
    BitSet again = new BitSet();
    Arrays.stream(refill).forEach(again::set);
    return new Message.Planned(new PlanUpdate(new Plan(shuffle, epoch, homes),
        List.of(new Executor(here.executorId(), here.host(), here.port())), again, ""));
  }

  /** The driver's reference to the executor's node. */
  private static RpcEndpointRef endpoint() {
    RpcEnv rpc = SparkEnv.get().rpcEnv();
    return rpc.setupEndpointRef(rpc.address(), Rpc.EXECUTOR + SparkEnv.get().executorId());
  }

  private static boolean flush(int shuffle) {
    return ((Message.Done) Rpc.ask(endpoint(), new Message.Flush(shuffle), 60_000)).ok();
  }

  private static long threads(String name) {
    return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals(name)).count();
  }

  /**
   * The driver did not answer an executor's first call; from then on every task there failed: its endpoint had that
   * name already.
   */
  @Test
  void anExecutorThatCouldNotRegisterTriesAgainFromTheBeginning() throws Exception {
    withDriver((env, driver) -> {
      long before = threads("gristmill-sender");
      driver.answers(new IllegalStateException("a mistake"), new NoClassDefFoundError("a/Missing"), null);
      assertTrue(assertThrows(Exception.class, () -> node(env, 60_000, Map.of())).getCause().getMessage().contains("a mistake"));
      assertThrows(Throwable.class, () -> node(env, 60_000, Map.of()));
      assertTrue(assertThrows(Exception.class, () -> node(env, 100, Map.of())).getMessage().contains("spark.gristmill.timeout"));
      try (ExecutorNode node = node(env, 60_000, Map.of())) {
        assertTrue(flush(1));
      }
      awaitThreads("gristmill-sender", before);
    });
  }

  private static void awaitThreads(String name, long count) throws InterruptedException {
    while (threads(name) > count) {
      Thread.sleep(10);
    }
  }

  @Test
  void aTaskWhoseDriverSaysNothingFailsAndNamesTheSetting() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 2000, Map.of())) {
        driver.answers(null, null, null, null);
        for (Executable call : List.<Executable>of(() -> node.start(1, 0, 0),
            () -> node.commit(1, 0, 0, 0, new long[1], Digest.EMPTY), () -> node.locate(new Message.Locate(1, 0, 1, 2, 3, 4)),
            () -> node.readingEnds(1, 2))) {
          assertTrue(assertThrows(Exception.class, call).getMessage().contains("spark.gristmill.timeout"));
        }
      }
    });
  }

  /** One error in the thread that calls the driver, and the pages of a shuffle never left. */
  @Test
  void aDriverIsAskedForAPlanUntilItSaysOne() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of())) {
        driver.answers(new NoClassDefFoundError("a/Missing"), new IllegalStateException("a mistake"), planned(env, 1, 1, 1));
        node.add(1, 0, 5, segment(1, 0, 5));
        assertTrue(flush(1));
        assertEquals(1, node.store().index(1, 0).entries().size());
      }
    });
  }

  /** The thread that sends ended, and map tasks and readers waited for it. */
  @Test
  void anExecutorThatCannotSendAnyMoreSaysSoToTasksAndReaders() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of())) {
        driver.answers(planned(env, 1, 1, 1)); // that has no partition 3
        node.add(1, 3, 5, segment(1, 3, 5));
        assertTrue(assertThrows(Exception.class, () -> flush(1)).getCause().getMessage().contains("gristmill-sender"));
        assertTrue(assertThrows(IOException.class, () -> node.add(2, 0, 5, segment(2, 0, 5))).getMessage().contains("gristmill-sender"));
      }
    });
  }

  /** A parcel that a home could not take in was lost without a word; now the flush says that it is missing. */
  @Test
  void aParcelThatItsHomeCannotTakeInFailsTheFlush() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of("spark.gristmill.send.tries", "1"))) {
        endpoint().send(Message.encode(planned(env, 1, 1, 1)));
        node.add(1, 0, 5, new byte[Segment.HEADER_BYTES]); // which is no segment
        assertFalse(flush(1));
      }
    });
  }

  @Test
  void copiesThatCannotBeSentAgainFailTheFlush() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of("spark.gristmill.recovery", "resend", "spark.gristmill.store.bytes", "1k"))) {
        endpoint().send(Message.encode(planned(env, 1, 1, 1)));
        node.add(1, 0, 5, segment(1, 0, 5));
        assertTrue(flush(1));
        endpoint().send(Message.encode(planned(env, 1, 2, 1, 0)));
        assertTrue(flush(1));
        Files.write(new StoreFiles(env.blockManager(), ".sent").file(0, 1).toPath(), new byte[0]);
        endpoint().send(Message.encode(planned(env, 1, 3, 1, 0)));
        assertFalse(flush(1));
      }
    });
  }

  /** The driver missed that an executor could not store a shuffle, and went on sending readers there. */
  @Test
  void theDriverIsToldThatAShuffleCannotBeStoredUntilItHasHeard() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of("spark.gristmill.store.bytes", "1k"))) {
        driver.asked.clear();
        driver.answers(new IllegalStateException("a mistake"));
        Files.createDirectories(new StoreFiles(env.blockManager(), ".store").file(0, 1).toPath()); // no file can be made there
        node.receive(List.of(segment(1, 0, 5)));
        for (int time = 0; time < 2; time++) {
          Message.StoreFailed said = (Message.StoreFailed) driver.asked.poll(60, TimeUnit.SECONDS);
          assertTrue(said.shuffle() == 1 && said.reason().contains("cannot store"), said.reason());
        }
      }
    });
  }

  @Test
  void messagesThatMakeNoSenseAreRefusedAndTheNextOneIsAnswered() throws Exception {
    withDriver((env, driver) -> {
      try (ExecutorNode node = node(env, 60_000, Map.of())) {
        endpoint().send(new byte[] {99});
        endpoint().send("no bytes at all");
        assertThrows(Exception.class, () -> Rpc.ask(endpoint(), (Object) new byte[] {99}, 60_000));
        assertThrows(Exception.class, () -> Rpc.ask(endpoint(), new Message.PlanRequest(1), 60_000));
        assertTrue(flush(1));
      }
    });
  }

  /**
   * The thread that reports a new executor asks a driver that does not answer: stopping the executor does not wait for
   * it.
   */
  @Test
  void anExecutorThatIsStoppedDoesNotWaitForItsDriver() throws Exception {
    withDriver((env, driver) -> {
      driver.answers((Object) null);
      GristmillShuffleManager manager = new GristmillShuffleManager(new SparkConf(false).set("spark.master", "local-cluster"), false);
      assertTrue(driver.asked.poll(60, TimeUnit.SECONDS) instanceof Message.Register);
      long start = System.nanoTime();
      manager.stop();
      assertTrue(System.nanoTime() - start < 60_000_000_000L, "the driver is waited for two minutes");
      awaitThreads("gristmill-start", 0);
    });
  }

  // All together:

  /**
   * The host of an executor was suspended and did not come back. Its connections stayed open: tasks that read
   * partitions there waited for eight minutes and more, and then again.
   */
  @Test
  @Timeout(240)
  void anExecutorThatIsStoppedForEverIsDoneWithout() throws Exception {
    try (TestCluster cluster = new TestCluster(2, new SparkConf(false).set(Settings.TIMEOUT.key(), "5000"))) {
      cluster.awaitExecutors(2);
      JavaPairRDD<Integer, Iterable<Integer>> groups = cluster.context
          .parallelizePairs(IntStream.range(0, 10_000).mapToObj(i -> new Tuple2<>(i % 100, i)).toList(), 12).groupByKey(6);
      assertEquals(100, groups.count());
      cluster.awaitDelivery(groups);
      ProcessHandle stopped = TestCluster.executors().get(0);
      assertEquals(0, new ProcessBuilder("kill", "-STOP", String.valueOf(stopped.pid())).start().waitFor());
      try {
        assertEquals(100, groups.count());
      } finally {
        stopped.destroyForcibly();
      }
    }
  }
}
