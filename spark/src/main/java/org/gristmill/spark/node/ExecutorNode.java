package org.gristmill.spark.node;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.gristmill.core.format.Digest;
import org.gristmill.core.format.Message;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;
import org.gristmill.core.home.PageStore;
import org.gristmill.core.lifecycle.RemovedShuffles;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Settings;
import org.gristmill.core.read.FetchTimeout;
import org.gristmill.core.send.Outbox;
import org.gristmill.core.send.PagePool;

/**
 * One executor's part in the shuffle, shared by all its tasks: the page pool and outbox for what its maps write, the
 * store for the partitions that live here, and the line to the driver.
 */
public final class ExecutorNode implements Outbox.Transport, AutoCloseable {
  private static final int GRAIN_BYTES = 4 << 20;
  private static final int PIECE_BYTES = 1 << 18;

  private final SparkExecutor spark;
  private final long timeoutMs;
  private final FetchTimeout fetchTimeout;
  private final String executorId;
  private final PagePool pool;
  private final Outbox outbox;
  private final PageStore store;
  private final PageStore sent; // copies of all sent segments, if recovery is resend; else null
  private final NodeMetrics metrics;
  private final LongAdder localBytes = new LongAdder();
  private final LongAdder remoteBytes = new LongAdder();
  private final LongAdder loserBytes = new LongAdder();
  private final Map<String, Executor> homes = new ConcurrentHashMap<>();
  private final UnreachableExecutors unreachable = new UnreachableExecutors(LOG);
  private final AtomicLong parcels = new AtomicLong();
  private final ExecutorService local = Executors.newSingleThreadExecutor(task -> DriverLine.daemon(task, "gristmill-local"));
  private final ExecutorService refiller = Executors.newSingleThreadExecutor(task -> DriverLine.daemon(task, "gristmill-refill"));
  private final Map<Integer, Lineage> lineages = new ConcurrentHashMap<>(); // the newest that the driver has sent of each shuffle
  private final Map<Integer, CompletableFuture<Boolean>> refills = new ConcurrentHashMap<>();
  private final Map<Integer, Plan> givenAway = new ConcurrentHashMap<>(); // the last plan of each shuffle that this executor hands over
  private final Set<String> refusing = ConcurrentHashMap.newKeySet();
  private final RemovedShuffles removed = new RemovedShuffles();
  private final DriverLine driver;

  /** Registers with the driver. If that fails, everything that was started is stopped again. */
  public static ExecutorNode started(SparkExecutor spark, Settings settings, long timeoutMs) {
    ExecutorNode node = new ExecutorNode(spark, settings, timeoutMs);
    try {
      spark.register(node, timeoutMs);
      return node;
    } catch (Throwable e) {
      node.close();
      throw e;
    }
  }

  private ExecutorNode(SparkExecutor spark, Settings settings, long timeoutMs) {
    this.spark = spark;
    this.timeoutMs = timeoutMs;
    fetchTimeout = new FetchTimeout(timeoutMs);
    executorId = spark.executor().id();
    driver = new DriverLine(spark::ask, executorId, timeoutMs);
    long budget = settings.number(Settings.POOL_BYTES);
    if (budget == 0) {
      budget = spark.sharedMemoryBytes() / 4;
    }
    Outbox.Limits limits = new Outbox.Limits(settings.size(Settings.PAGE_BYTES), settings.size(Settings.PARCEL_BYTES),
        settings.number(Settings.WINDOW_BYTES), settings.share(Settings.THRESHOLD), settings.size(Settings.SEND_TRIES),
        settings.number(Settings.SEND_RETRY), timeoutMs, settings.word(Settings.RECOVERY).equals("replicate") ? 2 : 1);
    pool = new PagePool(budget, GRAIN_BYTES, settings.number(Settings.POOL_PATIENCE), spark.poolMemory());
    store = store(settings, ".store", this::storeFailed);
    sent = settings.word(Settings.RECOVERY).equals("resend")
        ? store(settings, ".sent", (shuffle, cause) -> LOG.warn(
            "Copies of sent segments of shuffle {} can no longer be stored here; if a home is lost, maps will run again", shuffle, cause))
        : null;
    outbox = new Outbox(pool, this, this::planWanted, limits);
    metrics = new NodeMetrics().with("sentParcels", () -> outbox.counters().parcels())
        .with("sentBytes", () -> outbox.counters().sentBytes()).with("sentEarlyBytes", () -> outbox.counters().earlyBytes())
        .with("failedParcels", () -> outbox.counters().failedParcels())
        .with("droppedSegments", () -> outbox.counters().droppedSegments())
        .with("poolBytes", pool::usedBytes).with("poolWaitMs", () -> pool.waitNanos() / 1_000_000)
        .with("poolOverdrafts", pool::overdrafts).with("localReadBytes", localBytes::sum)
        .with("remoteReadBytes", remoteBytes::sum).with("loserBytes", loserBytes::sum);
    spark.report(metrics);
    LOG.info("Executor {} has a page pool of {} bytes", executorId, budget);
  }

  public String executorId() {
    return executorId;
  }

  private PageStore store(Settings settings, String suffix, PageStore.FailureListener lost) {
    return new PageStore(spark.disks(), spark.files(suffix), lost, (shuffle, cause) -> LOG.warn(
        "Shuffle {} goes on in the next local folder of executor {}: {}", shuffle, executorId, cause.getMessage()),
        settings.size(Settings.APPEND_BYTES),
        settings.number(Settings.STORE_BYTES), timeoutMs);
  }

  public PageStore store() {
    return store;
  }

  public FetchTimeout fetchTimeout() {
    return fetchTimeout;
  }

  public Emission start(int shuffle, int mapIndex, long attempt) {
    removed.seen(attempt);
    return ((Message.Begin) driver.call(new Message.Start(shuffle, mapIndex, attempt, executorId))).emission();
  }

  public Message.Committed commit(int shuffle, long attempt, long records, long millis, long[] sizes, Digest digest) {
    return (Message.Committed) driver.call(new Message.Commit(shuffle, attempt, records, millis, sizes, digest));
  }

  /** Null if the map statuses that the reader has may be of outputs that were replaced. */
  public Location locate(Message.Locate locate) {
    Lineage known = lineages.getOrDefault(locate.shuffle(), Lineage.NONE);
    if (!(driver.call(locate.knowing(known)) instanceof Message.Located located)) {
      return null;
    }
    Location found = located.location();
    found.homes().forEach(home -> homes.put(home.id(), home));
    if (found.lineage() == null) {
      return found.with(known); // this one, whatever other tasks have got meanwhile: the driver has said that it fits
    }
    lineages.merge(locate.shuffle(), found.lineage(), (a, b) -> a.version() > b.version() ? a : b);
    return found;
  }

  /** False if what a task attempt has read of a shuffle was replaced meanwhile. */
  public boolean readingEnds(int shuffle, long attempt) {
    return driver.isDone(new Message.ReadingEnds(shuffle, attempt));
  }

  public void add(int shuffle, int partition, long attempt, byte[] segment) throws InterruptedException, IOException {
    if (removed.concerns(shuffle, attempt)) {
      return; // the shuffle is gone
    }
    if (sent != null) {
      sent.receive(List.of(segment)); // first: so a new plan finds the copy, or the outbox sends by that plan
    }
    outbox.add(shuffle, partition, segment);
  }

  /**
   * A reader takes {@code chosen} bytes of a partition, and knows {@code losers} bytes there that no reader will take.
   */
  public void opened(boolean local, long chosen, long losers) {
    (local ? localBytes : remoteBytes).add(chosen);
    loserBytes.add(losers);
  }

  /** Has all executors deliver what they hold of the shuffle, and waits. */
  public boolean flush(int shuffle) {
    return driver.isDoneByOthers(new Message.Flush(shuffle));
  }

  /** True if nothing is lost and it is worth looking again. */
  public boolean missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) {
    return driver.isDone(new Message.Missing(shuffle, partition, winners, home, reason));
  }

  public void corrupt(int shuffle, int partition, int map, Map<Integer, Long> winners, String home, String reason) {
    driver.isDone(new Message.Corrupt(shuffle, partition, map, winners, home, reason));
  }

  public void remove(int shuffle) {
    removed.remove(shuffle);
    outbox.remove(shuffle);
    refills.remove(shuffle);
    givenAway.remove(shuffle);
    lineages.remove(shuffle);
    try {
      store.remove(shuffle);
      if (sent != null) {
        sent.remove(shuffle);
      }
    } catch (IOException e) {
      LOG.warn("Files of shuffle {} could not be deleted", shuffle, e);
    }
  }

  @Override
  public void close() {
    LOG.info("Executor {}: {}", executorId, metrics);
    spark.close();
    outbox.close();
    store.close();
    if (sent != null) {
      sent.close();
    }
    local.shutdownNow();
    driver.close();
    refiller.shutdownNow();
  }

  // Messages from the driver:

  /**
   * A plan is made or has changed: lets the outbox send by it, and sends again what partitions that have moved need.
   */
  public void planned(PlanUpdate update) {
    update.executors().forEach(executor -> homes.put(executor.id(), executor));
    int shuffle = update.plan().shuffle();
    boolean mine = update.leaving().equals(executorId);
    if (mine || givenAway.containsKey(shuffle)) { // first: what arrives from now on is refused, what has arrived is sent
      givenAway.merge(shuffle, update.plan(), (known, told) -> told.epoch() > known.epoch() ? told : known);
    }
    outbox.plan(update.plan());
    PageStore from = mine ? store : update.leaving().isEmpty() ? sent : null;
    if (from != null && !update.refill().isEmpty()) {
      CompletableFuture<Boolean> done = CompletableFuture.supplyAsync(() -> refill(from, shuffle, update.refill()), refiller);
      refills.merge(shuffle, done, (before, now) -> before.thenCombine(now, Boolean::logicalAnd));
    }
  }

  /**
   * This executor is being decommissioned: hands its partitions over to others, and returns when these have them, or
   * when that cannot be done; the maps of what is lost then run again when a reader needs it.
   */
  public void handOver() {
    long sentBefore = -1;
    boolean done = false;
    while (!done && sentBefore != outbox.counters().sentBytes()) { // else nothing was sent for a time-out
      sentBefore = outbox.counters().sentBytes();
      done = driver.isDoneByOthers(new Message.Leaving(executorId));
    }
    if (done) {
      LOG.info("Executor {} is being decommissioned and has handed over its partitions: {}", executorId, metrics);
    } else {
      LOG.warn("Executor {} is being decommissioned and could not hand over all of its partitions; maps will run again for what a reader does"
          + " not find. Earlier lines of this log, or those of the driver, say why", executorId);
    }
  }

  /**
   * An executor takes no parcels any more, because it is being decommissioned. It may not be able to tell the driver
   * itself.
   */
  public void refused(String home) {
    if (refusing.add(home)) {
      driver.untilDone("say that executor " + home + " is leaving", () -> driver.isDone(new Message.Refused(home)));
    }
  }

  /**
   * Sends all that waits of a shuffle; completes when it has arrived, with false if something could not be delivered.
   */
  public CompletableFuture<Boolean> flushed(int shuffle) {
    return refills.getOrDefault(shuffle, CompletableFuture.completedFuture(true))
        .thenCompose(refilled -> outbox.flush(shuffle).thenApply(arrived -> refilled && arrived))
        .orTimeout(timeoutMs, TimeUnit.MILLISECONDS);
  }

  // What the outbox asks for:

  /** Asks the driver for a plan. Never blocks. */
  private void planWanted(int shuffle) {
    driver.untilDone("ask where shuffle " + shuffle + " should go", () -> {
      Message answer = driver.call(new Message.PlanRequest(shuffle));
      if (answer instanceof Message.Planned found) {
        planned(found.update());
        return true;
      }
      boolean known = ((Message.Done) answer).ok();
      if (!known) {
        outbox.remove(shuffle); // there is no such shuffle any more
      }
      return !known; // there may be no executor to be a home just now
    });
  }

  /** Queues all segments of these partitions that a store of this executor has. True if that was possible. */
  private boolean refill(PageStore from, int shuffle, BitSet partitions) {
    try {
      for (int p = partitions.nextSetBit(0); p >= 0; p = partitions.nextSetBit(p + 1)) {
        for (PartitionIndex.Entry entry : from.index(shuffle, p).entries()) {
          byte[] segment = from.read(shuffle, p, entry.offset(), entry.bytes());
          if (Segment.intact(segment, 0, segment.length)) { // else no home would take it; its map runs again
            outbox.add(shuffle, p, segment);
          }
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
    if (home.equals(executorId)) {
      return CompletableFuture.runAsync(() -> receive(parcel), local).whenComplete((ok, error) -> sent(home, shuffle, error));
    }
    try {
      return spark.upload(homes.get(home), shuffle, parcels.getAndIncrement(), joined(parcel))
          .whenComplete((ok, error) -> sent(home, shuffle, error));
    } catch (Throwable e) { // Spark's transport throws checked exceptions without saying so
      unreachable.failed(home, shuffle, e);
      return CompletableFuture.failedFuture(e);
    }
  }

  private void sent(String home, int shuffle, Throwable error) {
    if (error == null) {
      unreachable.reached(home);
    } else {
      unreachable.failed(home, shuffle, error);
    }
  }

  /** Small segments are copied together, so that every write to the socket has something to write. */
  private static List<byte[]> joined(List<byte[]> segments) {
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
    return pieces;
  }

  /** Takes the segments of a parcel into the store. */
  public void receive(List<byte[]> parcel) {
    try {
      store.receive(parcel);
      refuseGivenAway(parcel);
    } catch (IOException e) {
      throw new IllegalStateException("a parcel could not be read", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while a parcel waited for the disk", e);
    }
  }

  /** Fails if the parcel came after its partitions were handed over, so that its sender sends it to their new homes. */
  private void refuseGivenAway(List<byte[]> parcel) throws IOException {
    for (byte[] segment : givenAway.isEmpty() ? List.<byte[]>of() : parcel) {
      Segment.Header header = Segment.header(segment, 0, segment.length);
      Plan plan = givenAway.get(header.shuffle());
      if (plan != null && !plan.homes()[header.partition()].equals(executorId) && !plan.replicas()[header.partition()].equals(executorId)) {
        throw new IOException("executor " + executorId + " is being decommissioned; partition " + header.partition() + " of shuffle "
            + header.shuffle() + " has moved to executor " + plan.homes()[header.partition()]);
      }
    }
  }

  private void storeFailed(int shuffle, IOException cause) {
    LOG.error("Partitions of shuffle {} can no longer be stored here", shuffle, cause);
    String reason = "executor " + executorId + " cannot store: " + cause.getMessage();
    driver.untilDone("say that shuffle " + shuffle + " cannot be stored here",
        () -> driver.isDone(new Message.StoreFailed(shuffle, executorId, reason)));
  }
}
