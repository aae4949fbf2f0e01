package org.apache.spark.shuffle.gristmill;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcAddress;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.scheduler.MapStatus;
import org.gristmill.core.Coordinator;
import org.gristmill.core.Message;
import org.gristmill.core.Recovery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.PartialFunction;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * The {@link Coordinator} as a Spark RPC endpoint: turns messages into its calls, and its decisions into messages. Messages are
 * handled one at a time.
 */
final class DriverEndpoint implements ThreadSafeRpcEndpoint, Coordinator.Cluster {
  private static final Logger LOG = LoggerFactory.getLogger(GristmillShuffleManager.class);

  /** A flush of one shuffle that has begun when the coordinator was at {@code version}. */
  private record Flushing(long version, CompletableFuture<Boolean> done) {}

  private final SparkEnv env;
  private final long timeoutMs;
  private final Coordinator coordinator;
  private final Map<String, RpcEndpointRef> executors = new ConcurrentHashMap<>();
  private final Map<RpcAddress, String> addresses = new ConcurrentHashMap<>();
  private final Map<Integer, Flushing> flushes = new ConcurrentHashMap<>();
  private final NodeMetrics metrics = new NodeMetrics().with("shufflesWritten", () -> counters().shufflesWritten())
      .with("predictionErrorPerMille", () -> counters().predictionErrorPerMille())
      .with("fullestHomePerMille", () -> counters().fullestHomePerMille())
      .with("roundRobinPerMille", () -> counters().roundRobinPerMille()).with("homesLost", () -> counters().homesLost())
      .with("attemptsRefused", () -> counters().attemptsRefused())
      .with("incompleteReads", () -> counters().incompleteReads()).with("outputsReplaced", () -> counters().outputsReplaced());
  private volatile SparkContext context;
  private volatile boolean ending;

  DriverEndpoint(SparkEnv env, double planShare, Recovery recovery, long timeoutMs) {
    this.env = env;
    this.timeoutMs = timeoutMs;
    coordinator = new Coordinator(this, planShare, recovery);
  }

  Coordinator coordinator() {
    return coordinator;
  }

  private Coordinator.Counters counters() {
    return coordinator.counters();
  }

  @Override
  public RpcEnv rpcEnv() {
    return env.rpcEnv();
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return Rpc.answering(context, message -> message instanceof Tuple2<?, ?> pair
        ? done(register((Message.Register) Message.decode((byte[]) pair._1()), (RpcEndpointRef) pair._2(), context.senderAddress()))
        : answer(Message.decode((byte[]) message)));
  }

  @Override
  public void onDisconnected(RpcAddress address) {
    String executor = addresses.remove(address);
    if (executor != null) {
      executorLost(executor);
    }
  }

  /** Listens for lost executors, from the first shuffle on: when this endpoint is made Spark's listener bus is not up yet. */
  synchronized void watchExecutors(SparkContext of) {
    if (context == null) {
      context = of;
      of.addSparkListener(new ExecutorWatch(this));
      env.metricsSystem().registerSource(metrics);
    }
  }

  void executorLost(String executor) {
    executors.remove(executor);
    if (!ending) {
      coordinator.executorLost(executor);
    }
  }

  /** From now on executors leave because the work is done. */
  void applicationEnds() {
    ending = true;
    LOG.info("Driver: {}", metrics);
  }

  void stageDelivered(int stage) {
    coordinator.stageDelivered(stage);
  }

  void shuffleRemoved(int shuffle) {
    flushes.remove(shuffle);
    coordinator.shuffleRemoved(shuffle);
  }

  private Message register(Message.Register m, RpcEndpointRef ref, RpcAddress sender) {
    executors.put(m.executor(), ref);
    addresses.put(sender, m.executor());
    coordinator.executorAdded(new Coordinator.Executor(m.executor(), m.host(), m.port()));
    LOG.info("Executor {} can be a home of partitions", m.executor());
    return new Message.Done(true);
  }

  private CompletableFuture<? extends Message> answer(Message message) {
    if (message instanceof Message.Start m) {
      return done(new Message.Begin(coordinator.start(m.shuffle(), m.mapIndex(), m.attempt(), m.executor())));
    } else if (message instanceof Message.Commit m) {
      Coordinator.Commit c = coordinator.commit(m.shuffle(), m.attempt(), m.records(), m.millis(), m.sizes(),
          m.digest());
      Coordinator.Executor at = c.accepted() ? c.location() : new Coordinator.Executor("", "", 0);
      if (c.complete()) {
        flush(m.shuffle()); // the map stage ends now: what still waits may leave before a reader asks for it
      }
      return done(new Message.Shaped(c.accepted(), at.id(), at.host(), at.port(), c.sizes(), c.rows()));
    } else if (message instanceof Message.Wanted m) {
      Coordinator.Placed placed = coordinator.placed(m.shuffle());
      return done(placed == null ? new Message.Done(coordinator.has(m.shuffle())) : new Message.Planned(placed));
    } else if (message instanceof Message.Locate m) {
      Coordinator.Location location =
          coordinator.locate(m.shuffle(), m.start(), m.end(), m.attempt(), m.stage(), m.statusesFrom());
      return done(location == null ? new Message.Done(false) : new Message.Located(location));
    } else if (message instanceof Message.ReadingEnds m) {
      return done(new Message.Done(coordinator.readingEnds(m.shuffle(), m.attempt())));
    } else if (message instanceof Message.Flush m) {
      return flush(m.shuffle()).thenApply(Message.Done::new);
    } else if (message instanceof Message.Missing m) {
      return done(new Message.Done(coordinator.missing(m.shuffle(), m.partition(), m.winners(),
          m.home().isEmpty() ? null : m.home(), m.reason())));
    } else if (message instanceof Message.StoreFailed m) {
      coordinator.homeLost(m.shuffle(), m.executor(), m.reason());
      return done(new Message.Done(true));
    }
    throw new IllegalArgumentException("the driver does not understand " + message);
  }

  private static CompletableFuture<Message> done(Message message) {
    return CompletableFuture.completedFuture(message);
  }

  /** Has every executor send what it holds of the shuffle; joins a flush that covers all commits and plans so far. */
  private CompletableFuture<Boolean> flush(int shuffle) {
    long version = coordinator.version(shuffle);
    Flushing running = flushes.get(shuffle);
    if (running != null && running.version == version && !running.done.isDone()) {
      return running.done;
    }
    Map<String, List<Long>> covered = coordinator.flushBegins(shuffle);
    List<CompletableFuture<Boolean>> answers = new ArrayList<>();
    covered.forEach((executor, attempts) -> {
      RpcEndpointRef ref = executors.get(executor);
      if (ref != null) {
        answers.add(Rpc.askLater(ref, new Message.Flush(shuffle), timeoutMs).toCompletableFuture().handle((answer, error) -> {
          boolean ok = error == null && ((Message.Done) answer).ok();
          if (ok) {
            coordinator.flushed(shuffle, attempts);
          }
          return ok;
        }));
      }
    });
    CompletableFuture<Boolean> done = CompletableFuture.allOf(answers.toArray(new CompletableFuture<?>[0]))
        .thenApply(ignored -> answers.stream().allMatch(CompletableFuture::join));
    flushes.put(shuffle, new Flushing(version, done));
    return done;
  }

  // What the coordinator has done for it:

  @Override
  public boolean unregister(int shuffle, Set<Long> attempts) {
    MapOutputTrackerMaster tracker = tracker();
    boolean any = false;
    Option<ShuffleStatus> status = tracker.shuffleStatuses().get(shuffle);
    if (status.isDefined()) {
      MapStatus[] registered = status.get().mapStatuses();
      for (int map = 0; map < registered.length; map++) {
        MapStatus winner = registered[map];
        if (winner != null && attempts.contains(winner.mapId())) {
          tracker.unregisterMapOutput(shuffle, map, winner.location());
          any = true;
        }
      }
    }
    return any;
  }

  @Override
  public boolean unregisterAnywhere(long attempt) {
    boolean any = false;
    for (Object shuffle : CollectionConverters.asJava(tracker().shuffleStatuses().keySet())) {
      any |= unregister((Integer) shuffle, Set.of(attempt));
    }
    return any;
  }

  @Override
  public long trackerEpoch() {
    return tracker().getEpoch();
  }

  private MapOutputTrackerMaster tracker() {
    return (MapOutputTrackerMaster) env.mapOutputTracker();
  }

  @Override
  public void fail(int stage, String reason) {
    LOG.error("Stage {} cannot go on: {}", stage, reason);
    context.cancelStage(stage, reason);
  }

  @Override
  public void publish(Coordinator.Placed placed) {
    executors.values().forEach(ref -> Rpc.send(ref, new Message.Planned(placed)));
  }

  @Override
  public void log(String line) {
    LOG.info("{}", line);
  }
}
