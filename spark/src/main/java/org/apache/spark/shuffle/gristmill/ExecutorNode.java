package org.apache.spark.shuffle.gristmill;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.RpcUtils;
import org.gristmill.core.Coordinator;
import org.gristmill.core.Digest;
import org.gristmill.core.Emission;
import org.gristmill.core.Message;
import org.gristmill.core.Outbox;
import org.gristmill.core.PagePool;
import org.gristmill.core.PageStore;
import org.gristmill.core.PartitionIndex;
import org.gristmill.core.Removed;
import org.gristmill.core.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.PartialFunction;
import scala.Tuple2;
import scala.jdk.javaapi.FutureConverters;
import scala.runtime.BoxedUnit;

/**
 * One executor's part in the shuffle, shared by all its tasks: the page pool and outbox for what its maps write, the store for
 * the partitions that live here, and the line to the driver.
 */
final class ExecutorNode implements ThreadSafeRpcEndpoint, Outbox.Transport, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(GristmillShuffleManager.class);
  private static final int GRAIN_BYTES = 4 << 20;
  private static final int PIECE_BYTES = 1 << 18;

  private final SparkEnv env;
  private final long timeoutMs;
  private final Patience patience;
  private final BlockManagerId self;
  private final RpcEndpointRef driver;
  private final RpcEndpointRef endpoint;
  private final PagePool pool;
  private final Outbox outbox;
  private final PageStore store;
  private final PageStore kept; // what this executor has sent, if it can be asked to send it again; else null
  private final NodeMetrics metrics;
  private final LongAdder localBytes = new LongAdder();
  private final LongAdder remoteBytes = new LongAdder();
  private final LongAdder loserBytes = new LongAdder();
  private final Map<String, Coordinator.Executor> homes = new ConcurrentHashMap<>();
  private final AtomicLong parcels = new AtomicLong();
  private final ExecutorService local = Executors.newSingleThreadExecutor(task -> daemon(task, "gristmill-local"));
  private final ExecutorService refiller = Executors.newSingleThreadExecutor(task -> daemon(task, "gristmill-refill"));
  private final Map<Integer, CompletableFuture<Boolean>> refills = new ConcurrentHashMap<>();
  private final Removed removed = new Removed();
  private final ScheduledExecutorService later =
      Executors.newSingleThreadScheduledExecutor(task -> daemon(task, "gristmill-driver-calls"));

  /** Registers with the driver; if that cannot be done, nothing is left of it. */
  static ExecutorNode started(SparkEnv env, Settings settings, long timeoutMs) {
    ExecutorNode node = new ExecutorNode(env, settings, timeoutMs);
    try {
      node.register();
      return node;
    } catch (Throwable e) {
      node.close();
      throw e;
    }
  }

  private ExecutorNode(SparkEnv env, Settings settings, long timeoutMs) {
    this.env = env;
    this.timeoutMs = timeoutMs;
    patience = new Patience(timeoutMs);
    driver = RpcUtils.makeDriverRef(Rpc.DRIVER, env.conf(), env.rpcEnv()); // first: without it no thread is started
    self = env.blockManager().blockManagerId();
    long budget = settings.number(Settings.POOL_BYTES);
    if (budget == 0) {
      budget = env.memoryManager().maxOnHeapStorageMemory() / 4;
    }
    Outbox.Limits limits = new Outbox.Limits(settings.size(Settings.PAGE_BYTES), settings.size(Settings.PARCEL_BYTES),
        settings.number(Settings.WINDOW_BYTES), settings.share(Settings.THRESHOLD), settings.size(Settings.SEND_TRIES),
        settings.number(Settings.SEND_RETRY), timeoutMs, settings.word(Settings.RECOVERY).equals("replicate") ? 2 : 1);
    pool = new PagePool(budget, GRAIN_BYTES, settings.number(Settings.POOL_PATIENCE), new SparkMemory(env.memoryManager()));
    store = store(settings, ".store", this::storeFailed);
    kept = settings.word(Settings.RECOVERY).equals("resend") ? store(settings, ".kept", (shuffle, cause) -> LOG.warn(
        "What is sent of shuffle {} can no longer be kept here; should a home be lost, maps will run again", shuffle, cause))
        : null;
    outbox = new Outbox(pool, this, this::planWanted, limits);
    metrics = new NodeMetrics().with("sentParcels", () -> outbox.counters().parcels())
        .with("sentBytes", () -> outbox.counters().sentBytes()).with("sentEarlyBytes", () -> outbox.counters().earlyBytes())
        .with("failedParcels", () -> outbox.counters().failedParcels())
        .with("droppedSegments", () -> outbox.counters().droppedSegments())
        .with("poolBytes", pool::usedBytes).with("poolWaitMs", () -> pool.waitNanos() / 1_000_000)
        .with("poolOverdrafts", pool::overdrafts).with("localReadBytes", localBytes::sum)
        .with("remoteReadBytes", remoteBytes::sum).with("loserBytes", loserBytes::sum);
    env.metricsSystem().registerSource(metrics);
    endpoint = env.rpcEnv().setupEndpoint(Rpc.EXECUTOR + self.executorId(), this);
    LOG.info("Executor {} has a page pool of {} bytes", self.executorId(), budget);
  }

  private void register() {
    Rpc.ask(driver, new Tuple2<>(Message.encode(new Message.Register(self.executorId(), self.host(), self.port())), endpoint),
        timeoutMs);
  }

  String executorId() {
    return self.executorId();
  }

  private PageStore store(Settings settings, String ending, PageStore.FailureListener listener) {
    return new PageStore(env.blockManager().diskBlockManager().localDirs().length, new StoreFiles(env.blockManager(), ending),
        listener, settings.size(Settings.APPEND_BYTES), settings.number(Settings.STORE_BYTES), timeoutMs);
  }

  PageStore store() {
    return store;
  }

  Patience patience() {
    return patience;
  }

  PagePool pool() {
    return pool;
  }

  Emission start(int shuffle, int mapIndex, long attempt) {
    removed.seen(attempt);
    return ((Message.Begin) call(new Message.Start(shuffle, mapIndex, attempt, self.executorId()))).emission();
  }

  Message.Shaped commit(int shuffle, long attempt, long records, long millis, long[] sizes, Digest digest) {
    return (Message.Shaped) call(new Message.Commit(shuffle, attempt, records, millis, sizes, digest));
  }

  /** Null if the map statuses that the reader has may be of outputs that were replaced. */
  Coordinator.Location locate(Message.Locate locate) {
    if (!(call(locate) instanceof Message.Located located)) {
      return null;
    }
    located.location().homes().forEach(home -> homes.put(home.id(), home));
    return located.location();
  }

  /** False if what a task attempt has read of a shuffle was replaced meanwhile. */
  boolean readingEnds(int shuffle, long attempt) {
    return ((Message.Done) call(new Message.ReadingEnds(shuffle, attempt))).ok();
  }

  void add(int shuffle, int partition, long attempt, byte[] segment) throws InterruptedException, IOException {
    if (removed.concerns(shuffle, attempt)) {
      return; // nobody will read it
    }
    if (kept != null) {
      kept.receive(List.of(segment)); // first: what comes after a plan is read for it, or is sent by it
    }
    outbox.add(shuffle, partition, segment);
  }

  /** A reader takes {@code chosen} bytes of a partition, and knows {@code losers} bytes there that no reader will take. */
  void opened(boolean local, long chosen, long losers) {
    (local ? localBytes : remoteBytes).add(chosen);
    loserBytes.add(losers);
  }

  /** Has all executors deliver what they hold of the shuffle, and waits. */
  boolean flush(int shuffle) {
    return ((Message.Done) Rpc.ask(driver, new Message.Flush(shuffle), 2 * timeoutMs)).ok(); // the driver waits once
  }

  /** True if nothing is lost and it is worth looking again. */
  boolean missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) {
    return ((Message.Done) call(new Message.Missing(shuffle, partition, winners, home, reason))).ok();
  }

  void remove(int shuffle) {
    removed.remove(shuffle);
    outbox.remove(shuffle);
    refills.remove(shuffle);
    try {
      store.remove(shuffle);
      if (kept != null) {
        kept.remove(shuffle);
      }
    } catch (IOException e) {
      LOG.warn("Files of shuffle {} could not be deleted", shuffle, e);
    }
  }

  @Override
  public void close() {
    LOG.info("Executor {}: {}", self.executorId(), metrics);
    env.metricsSystem().removeSource(metrics);
    env.rpcEnv().stop(endpoint);
    outbox.close();
    store.close();
    if (kept != null) {
      kept.close();
    }
    local.shutdownNow();
    later.shutdownNow();
    refiller.shutdownNow();
  }

  // Messages from the driver:

  @Override
  public RpcEnv rpcEnv() {
    return env.rpcEnv();
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return Rpc.handling(message -> planned(((Message.Planned) Message.decode((byte[]) message)).placed()));
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return Rpc.answering(context, message -> {
      int shuffle = ((Message.Flush) Message.decode((byte[]) message)).shuffle();
      return refills.getOrDefault(shuffle, CompletableFuture.completedFuture(true))
          .thenCompose(refilled -> outbox.flush(shuffle).thenApply(sent -> refilled && sent))
          .orTimeout(timeoutMs, TimeUnit.MILLISECONDS).thenApply(Message.Done::new);
    });
  }

  // What the outbox asks for:

  /** Asks the driver for a plan. Never blocks. */
  private void planWanted(int shuffle) {
    untilDone("ask where shuffle " + shuffle + " should go", () -> {
      Message answer = call(new Message.Wanted(shuffle));
      if (answer instanceof Message.Planned found) {
        planned(found.placed());
        return true;
      }
      boolean known = ((Message.Done) answer).ok();
      if (!known) {
        outbox.remove(shuffle); // there is no such shuffle any more
      }
      return !known; // there may be no executor to be a home just now
    });
  }

  /** Calls the driver from a thread for that, again every second until the call returns true or this node is closed. Never blocks. */
  private void untilDone(String what, BooleanSupplier call) {
    Runnable attempt = () -> {
      boolean done = false;
      try {
        done = call.getAsBoolean();
      } catch (Throwable e) { // Spark's RPC throws checked exceptions without saying so; an error would end this without a word
        if (!later.isShutdown()) {
          LOG.warn("The driver did not answer; in a second executor {} will again {}", self.executorId(), what, e);
        }
      }
      if (!done) {
        later.schedule(() -> untilDone(what, call), 1, TimeUnit.SECONDS);
      }
    };
    if (!later.isShutdown()) {
      later.execute(attempt);
    }
  }

  /** Lets the outbox send by this plan, and sends again what partitions that have moved need. */
  private void planned(Coordinator.Placed placed) {
    placed.executors().forEach(executor -> homes.put(executor.id(), executor));
    outbox.plan(placed.plan());
    if (kept != null && !placed.refill().isEmpty()) {
      int shuffle = placed.plan().shuffle();
      CompletableFuture<Boolean> done = CompletableFuture.supplyAsync(() -> refill(shuffle, placed.refill()), refiller);
      refills.merge(shuffle, done, (before, now) -> before.thenCombine(now, Boolean::logicalAnd));
    }
  }

  /** True if all that was kept of the partitions waits to be sent now. */
  private boolean refill(int shuffle, BitSet partitions) {
    try {
      for (int p = partitions.nextSetBit(0); p >= 0; p = partitions.nextSetBit(p + 1)) {
        for (PartitionIndex.Entry segment : kept.index(shuffle, p).entries()) {
          outbox.add(shuffle, p, kept.read(shuffle, p, segment.offset(), segment.bytes()));
        }
      }
      return true;
    } catch (Throwable e) {
      LOG.warn("Partitions {} of shuffle {} could not all be sent again", partitions, shuffle, e);
      return false;
    }
  }

  @Override
  public CompletableFuture<Void> send(String home, int shuffle, List<byte[]> parcel) {
    if (home.equals(self.executorId())) {
      return CompletableFuture.runAsync(() -> receive(parcel), local).whenComplete((ok, error) -> notSent(home, shuffle, error));
    }
    try {
      Coordinator.Executor to = homes.get(home);
      ByteBuf bytes = joined(parcel);
      return FutureConverters.asJava(SparkTransfer.upload(env.blockManager().blockTransferService(), to.host(), to.port(), home,
          BlockNames.parcel(shuffle, parcels.getAndIncrement(), bytes.readableBytes()), new NettyManagedBuffer(bytes)))
          .toCompletableFuture().thenApply(done -> null);
    } catch (Throwable e) { // what goes wrong later Spark logs
      notSent(home, shuffle, e);
      return CompletableFuture.failedFuture(e);
    }
  }

  private static void notSent(String home, int shuffle, Throwable error) {
    if (error != null) {
      LOG.warn("A parcel of shuffle {} was not sent to executor {}", shuffle, home, error);
    }
  }

  /** Small segments are copied together, so that every write to the socket has something to write. */
  private static ByteBuf joined(List<byte[]> segments) {
    List<byte[]> pieces = new ArrayList<>();
    for (int first = 0, end; first < segments.size(); first = end) {
      int bytes = segments.get(first).length;
      for (end = first + 1; end < segments.size() && bytes + segments.get(end).length <= PIECE_BYTES; end++) {
        bytes += segments.get(end).length;
      }
      ByteBuffer piece = ByteBuffer.wrap(end == first + 1 ? segments.get(first) : new byte[bytes]);
      for (int i = first; end > first + 1 && i < end; i++) {
        piece.put(segments.get(i));
      }
      pieces.add(piece.array());
    }
    return Unpooled.wrappedBuffer(pieces.size(), pieces.toArray(byte[][]::new));
  }

  /** Takes the segments of a parcel into the store. */
  void receive(List<byte[]> parcel) {
    try {
      store.receive(parcel);
    } catch (IOException e) {
      throw new IllegalStateException("a parcel could not be read", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while a parcel waited for the disk", e);
    }
  }

  private void storeFailed(int shuffle, IOException cause) {
    LOG.error("Partitions of shuffle {} can no longer be stored here", shuffle, cause);
    String reason = "executor " + self.executorId() + " cannot store: " + cause.getMessage();
    untilDone("say that shuffle " + shuffle + " cannot be stored here",
        () -> ((Message.Done) call(new Message.StoreFailed(shuffle, self.executorId(), reason))).ok());
  }

  private Message call(Message message) {
    return Rpc.ask(driver, message, timeoutMs);
  }

  private static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }
}
