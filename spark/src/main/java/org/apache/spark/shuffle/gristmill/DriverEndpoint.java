package org.apache.spark.shuffle.gristmill;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcAddress;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.storage.BlockManagerId$;
import org.apache.spark.storage.BlockUpdatedInfo;
import org.apache.spark.storage.StorageLevel;
import org.gristmill.core.driver.MapOutputs;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;
import org.gristmill.spark.node.DriverNode;
import scala.Option;
import scala.PartialFunction;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** The {@link DriverNode}, as Spark's RPC sees it; and Spark's map outputs, as the node sees them. */
final class DriverEndpoint implements ThreadSafeRpcEndpoint, MapOutputs {
  private final SparkEnv env;
  private final StatusLocations locations;
  private final DriverNode node;
  private final Map<RpcAddress, String> addresses = new ConcurrentHashMap<>();
  private volatile SparkContext context;

  DriverEndpoint(SparkEnv env, StatusLocations locations, double planShare, Recovery recovery, boolean strict, long timeoutMs) {
    this.env = env;
    this.locations = locations;
    node = new DriverNode(this, planShare, recovery, strict, timeoutMs);
  }

  DriverNode node() {
    return node;
  }

  @Override
  public RpcEnv rpcEnv() {
    return env.rpcEnv();
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return Rpc.answering(context, message -> {
      if (message instanceof Tuple2<?, ?> pair) {
        Message.Register m = (Message.Register) Message.decode((byte[]) pair._1());
        addresses.put(context.senderAddress(), m.executor());
        node.executorAdded(new Executor(m.executor(), m.host(), m.port()), line((RpcEndpointRef) pair._2()));
        return CompletableFuture.completedFuture(new Message.Done(true));
      }
      return node.answer(Message.decode((byte[]) message));
    });
  }

  private static DriverNode.ExecutorLine line(RpcEndpointRef executor) {
    return new DriverNode.ExecutorLine() {
      @Override
      public void send(Message message) {
        Rpc.send(executor, message);
      }

      @Override
      public CompletionStage<Message> ask(Message message, long timeoutMs) {
        return Rpc.askLater(executor, message, timeoutMs);
      }
    };
  }

  @Override
  public void onDisconnected(RpcAddress address) {
    String executor = addresses.remove(address);
    if (executor != null) {
      node.executorLost(executor);
    }
  }

  /**
   * Listens for lost executors, from the first shuffle on: Spark's listener bus is not up yet when this endpoint is
   * made.
   */
  synchronized void watchExecutors(SparkContext of) {
    if (context == null) {
      context = of;
      of.addSparkListener(new ExecutorListener(node));
      env.metricsSystem().registerSource(new MetricsSource(node.metrics()));
      warnOfDecommissioning(env.conf());
    }
  }

  private static void warnOfDecommissioning(SparkConf conf) {
    boolean moves = conf.getBoolean("spark.storage.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.shuffleBlocks.enabled", true);
    if (conf.getBoolean("spark.decommission.enabled", false) && !moves) {
      LOG.warn("spark.decommission.enabled is true, but Spark is not told to move shuffle data: an executor that is decommissioned takes its"
          + " partitions with it, and maps run again. Set spark.storage.decommission.enabled=true, and leave"
          + " spark.storage.decommission.shuffleBlocks.enabled at true");
    }
  }

  // The map outputs:

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
  public void move(int shuffle, String from, List<Executor> to) {
    MapOutputTrackerMaster tracker = tracker();
    Option<ShuffleStatus> status = tracker.shuffleStatuses().get(shuffle);
    int moved = 0;
    for (MapStatus winner : status.isDefined() ? status.get().mapStatuses() : new MapStatus[0]) {
      if (winner != null && winner.location().executorId().equals(from)) {
        Executor next = to.get(moved++ % to.size());
        tracker.updateMapOutput(shuffle, winner.mapId(), locations.of(next.id(), next.host(), next.port()));
      }
    }
  }

  /**
   * Spark takes an executor to keep data of a shuffle if it ran maps of it, or if it reports a block of it, as one does
   * to which a decommissioned executor has sent its map outputs. So each home is reported in that way.
   */
  @Override
  public void keep(int shuffle, List<Executor> homes) {
    SparkContext of = context;
    if (of != null && of.executorAllocationManager().isDefined() && of.schedulerBackend() instanceof ExecutorAllocationClient client) {
      for (Executor home : homes) {
        if (client.isExecutorActive(home.id())) { // Spark would go on to watch one that is gone
          of.listenerBus().post(new SparkListenerBlockUpdated(new BlockUpdatedInfo(
              BlockManagerId$.MODULE$.apply(home.id(), home.host(), home.port(), Option.empty()), BlockNames.parcel(shuffle, 0, 0),
              StorageLevel.DISK_ONLY(), 0, 0)));
        }
      }
    }
  }

  @Override
  public void fail(int stage, String reason) {
    // Not cancelled, which would read as if a user had done it.
    context.dagScheduler().taskSetFailed(SparkTransfer.tasksOf(stage), reason, Option.empty());
  }
}
