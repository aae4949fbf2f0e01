package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.util.RpcUtils;
import org.gristmill.core.Coordinator;
import org.gristmill.core.Emission;
import org.gristmill.core.Message;
import org.gristmill.core.Outbox;
import org.gristmill.core.PagePool;
import org.gristmill.core.PageStore;
import org.gristmill.core.Plan;
import org.gristmill.core.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.PartialFunction;
import scala.Tuple2;
import scala.jdk.javaapi.FutureConverters;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/**
 * One executor's part in the shuffle, shared by all its tasks: the page pool and outbox for what its maps write, the store for
 * the partitions that live here, and the line to the driver.
 */
final class ExecutorNode implements ThreadSafeRpcEndpoint, Outbox.Transport, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(GristmillShuffleManager.class);
  private static final int GRAIN_BYTES = 4 << 20;

  private final SparkEnv env;
  private final long timeoutMs;
  private final BlockManagerId self;
  private final RpcEndpointRef driver;
  private final RpcEndpointRef endpoint;
  private final PagePool pool;
  private final Outbox outbox;
  private final PageStore store;
  private final Map<String, Coordinator.Executor> homes = new ConcurrentHashMap<>();
  private final AtomicLong parcels = new AtomicLong();
  private final ExecutorService local = Executors.newSingleThreadExecutor(task -> daemon(task, "gristmill-local"));
  private final ScheduledExecutorService later =
      Executors.newSingleThreadScheduledExecutor(task -> daemon(task, "gristmill-driver-calls"));

  ExecutorNode(SparkEnv env, Settings settings) {
    this.env = env;
    timeoutMs = settings.number(Settings.FLUSH_TIMEOUT);
    self = env.blockManager().blockManagerId();
    long budget = settings.number(Settings.POOL_BYTES);
    if (budget == 0) {
      budget = env.memoryManager().maxOnHeapStorageMemory() / 4;
    }
    pool = new PagePool(budget, GRAIN_BYTES, settings.number(Settings.POOL_PATIENCE), new SparkMemory(env.memoryManager()));
    store = new PageStore(env.blockManager().diskBlockManager().localDirs().length, new StoreFiles(env.blockManager()),
        this::storeFailed, settings.size(Settings.APPEND_BYTES), settings.number(Settings.STORE_BYTES));
    outbox = new Outbox(pool, this, this::planWanted,
        new Outbox.Limits(settings.size(Settings.PAGE_BYTES), settings.size(Settings.PARCEL_BYTES),
            settings.number(Settings.WINDOW_BYTES), settings.share(Settings.THRESHOLD), settings.size(Settings.SEND_TRIES),
            settings.number(Settings.SEND_RETRY)));
    driver = RpcUtils.makeDriverRef(Rpc.DRIVER, env.conf(), env.rpcEnv());
    endpoint = env.rpcEnv().setupEndpoint(Rpc.EXECUTOR + self.executorId(), this);
    Rpc.ask(driver, new Tuple2<>(Message.encode(new Message.Register(self.executorId(), self.host(), self.port())), endpoint),
        timeoutMs);
    LOG.info("Executor {} has a page pool of {} bytes", self.executorId(), budget);
  }

  String executorId() {
    return self.executorId();
  }

  PageStore store() {
    return store;
  }

  PagePool pool() {
    return pool;
  }

  Emission start(int shuffle, int mapIndex, long attempt) {
    return ((Message.Begin) call(new Message.Start(shuffle, mapIndex, attempt, self.executorId()))).emission();
  }

  Message.Shaped commit(int shuffle, long attempt, long records, long millis, long[] sizes) {
    return (Message.Shaped) call(new Message.Commit(shuffle, attempt, records, millis, sizes));
  }

  Coordinator.Location locate(int shuffle, int start, int end) {
    Coordinator.Location location = ((Message.Located) call(new Message.Locate(shuffle, start, end))).location();
    location.homes().forEach(home -> homes.put(home.id(), home));
    return location;
  }

  void add(int shuffle, int partition, byte[] segment) throws InterruptedException {
    outbox.add(shuffle, partition, segment);
  }

  /** Has all executors deliver what they hold of the shuffle, and waits. */
  boolean flush(int shuffle) {
    return ((Message.Done) Rpc.ask(driver, new Message.Flush(shuffle), 2 * timeoutMs)).ok(); // the driver waits once
  }

  void missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) {
    call(new Message.Missing(shuffle, partition, winners, home, reason));
  }

  void remove(int shuffle) {
    outbox.remove(shuffle);
    try {
      store.remove(shuffle);
    } catch (IOException e) {
      LOG.warn("Files of shuffle {} could not be deleted", shuffle, e);
    }
  }

  @Override
  public void close() {
    Outbox.Counters sent = outbox.counters();
    LOG.info("Executor {} sent {} parcels, {} bytes of which {} before the map stage ended; {} failed, {} segments given up;"
        + " tasks waited {} ms for pages, {} times over budget", self.executorId(), sent.parcels(), sent.sentBytes(),
        sent.earlyBytes(), sent.failedParcels(), sent.droppedSegments(), pool.waitNanos() / 1_000_000, pool.overdrafts());
    env.rpcEnv().stop(endpoint);
    outbox.close();
    store.close();
    local.shutdownNow();
    later.shutdownNow();
  }

  // Messages from the driver:

  @Override
  public RpcEnv rpcEnv() {
    return env.rpcEnv();
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return Rpc.handler(message -> planned(((Message.Planned) Message.decode((byte[]) message)).plan()));
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return Rpc.handler(message -> {
      Message.Flush flush = (Message.Flush) Message.decode((byte[]) message);
      outbox.flush(flush.shuffle()).thenAccept(ok -> context.reply(Message.encode(new Message.Done(ok))));
    });
  }

  // What the outbox asks for:

  /** Asks the driver for a plan; again after a while if it could not be had. Never blocks. */
  private void planWanted(int shuffle) {
    later.execute(() -> {
      Plan plan = new Plan(shuffle, 0, new String[0]);
      try {
        plan = ((Message.Planned) call(new Message.Wanted(shuffle))).plan();
      } catch (Exception e) { // Spark's RPC throws checked exceptions without saying so
        LOG.warn("The driver did not say where shuffle {} should go", shuffle, e);
      }
      if (plan.homes().length > 0) {
        planned(plan);
      } else {
        later.schedule(() -> planWanted(shuffle), 1, TimeUnit.SECONDS);
      }
    });
  }

  /** Learns the addresses of a plan's homes, then lets the outbox send. */
  private void planned(Plan plan) {
    later.execute(() -> {
      try {
        for (String home : plan.homes()) {
          if (!homes.containsKey(home) && !home.equals(self.executorId())) {
            locate(plan.shuffle(), 0, plan.homes().length);
          }
        }
        outbox.plan(plan);
      } catch (RuntimeException e) {
        LOG.warn("The homes of shuffle {} could not be looked up", plan.shuffle(), e);
      }
    });
  }

  @Override
  public CompletableFuture<Void> send(String home, int shuffle, byte[] parcel) {
    if (home.equals(self.executorId())) {
      return CompletableFuture.runAsync(() -> receive(parcel), local);
    }
    Coordinator.Executor to = homes.get(home);
    return FutureConverters.asJava(env.blockManager().blockTransferService().uploadBlock(to.host(), to.port(), home,
        BlockNames.parcel(shuffle, parcels.getAndIncrement(), parcel.length), new NioManagedBuffer(ByteBuffer.wrap(parcel)),
        StorageLevel.DISK_ONLY(), ClassTag$.MODULE$.Byte())).toCompletableFuture().thenApply(done -> null);
  }

  /** Takes a parcel into the store. */
  void receive(byte[] parcel) {
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
    String reason = "executor " + self.executorId() + " cannot store: " + cause;
    later.execute(() -> call(new Message.StoreFailed(shuffle, self.executorId(), reason)));
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
