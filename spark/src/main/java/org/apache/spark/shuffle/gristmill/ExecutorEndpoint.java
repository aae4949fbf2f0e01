package org.apache.spark.shuffle.gristmill;

import io.netty.buffer.Unpooled;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.rpc.ThreadSafeRpcEndpoint;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.BlockSavedOnDecommissionedBlockManagerException;
import org.apache.spark.util.RpcUtils;
import org.gristmill.core.format.Message;
import org.gristmill.core.home.PageStore;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.send.PagePool;
import org.gristmill.spark.node.ExecutorNode;
import org.gristmill.spark.node.NodeMetrics;
import org.gristmill.spark.node.SparkExecutor;
import scala.PartialFunction;
import scala.Tuple2;
import scala.jdk.javaapi.FutureConverters;
import scala.runtime.BoxedUnit;

/** Spark, as the {@link ExecutorNode} of this executor sees it; and the node, as Spark's RPC sees it. */
final class ExecutorEndpoint implements ThreadSafeRpcEndpoint, SparkExecutor {
  /** The exception of a block manager that takes no blocks any more; from another executor it comes as text. */
  private static final String DECOMMISSIONED = BlockSavedOnDecommissionedBlockManagerException.class.getSimpleName();

  private final SparkEnv env;
  private final BlockManagerId self;
  private final RpcEndpointRef driver;
  private volatile ExecutorNode node;
  private RpcEndpointRef endpoint;
  private MetricsSource metrics;

  /** Throws if there is no driver endpoint. */
  ExecutorEndpoint(SparkEnv env) {
    this.env = env;
    driver = RpcUtils.makeDriverRef(Rpc.DRIVER, env.conf(), env.rpcEnv());
    self = env.blockManager().blockManagerId();
  }

  @Override
  public Executor executor() {
    return new Executor(self.executorId(), self.host(), self.port());
  }

  @Override
  public long sharedMemoryBytes() {
    return env.memoryManager().maxOnHeapStorageMemory();
  }

  @Override
  public PagePool.Reservation poolMemory() {
    return new PoolMemory(env.memoryManager());
  }

  @Override
  public int disks() {
    return env.blockManager().diskBlockManager().localDirs().length;
  }

  @Override
  public PageStore.FileChooser files(String suffix) {
    return new StoreFiles(env.blockManager(), suffix);
  }

  @Override
  public void register(ExecutorNode registered, long timeoutMs) {
    node = registered;
    endpoint = env.rpcEnv().setupEndpoint(Rpc.EXECUTOR + self.executorId(), this);
    Message.Register message = new Message.Register(self.executorId(), self.host(), self.port());
    Rpc.ask(driver, new Tuple2<>(Message.encode(message), endpoint), timeoutMs);
  }

  @Override
  public Message ask(Message message, long timeoutMs) {
    return Rpc.ask(driver, message, timeoutMs);
  }

  @Override
  public CompletableFuture<Void> upload(Executor to, int shuffle, long number, List<byte[]> pieces) {
    NettyManagedBuffer parcel = new NettyManagedBuffer(Unpooled.wrappedBuffer(pieces.size(), pieces.toArray(byte[][]::new)));
    return FutureConverters.asJava(SparkTransfer.upload(env.blockManager().blockTransferService(), to.host(), to.port(), to.id(),
        BlockNames.parcel(shuffle, number, (int) parcel.size()), parcel)).toCompletableFuture().<Void>thenApply(done -> null)
        .whenComplete((done, error) -> {
          if (error != null && error.toString().contains(DECOMMISSIONED)) {
            node.refused(to.id());
          }
        });
  }

  @Override
  public void report(NodeMetrics reported) {
    metrics = new MetricsSource(reported);
    env.metricsSystem().registerSource(metrics);
  }

  @Override
  public void close() {
    if (metrics != null) {
      env.metricsSystem().removeSource(metrics);
    }
    if (endpoint != null) {
      env.rpcEnv().stop(endpoint);
    }
  }

  @Override
  public RpcEnv rpcEnv() {
    return env.rpcEnv();
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return Rpc.handling(message -> node.planned(((Message.Planned) Message.decode((byte[]) message)).update()));
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return Rpc.answering(context, message -> {
      int shuffle = ((Message.Flush) Message.decode((byte[]) message)).shuffle();
      return node.flushed(shuffle).thenApply(Message.Done::new);
    });
  }
}
