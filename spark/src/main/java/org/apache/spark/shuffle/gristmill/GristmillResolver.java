package org.apache.spark.shuffle.gristmill;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.shuffle.MergedBlockMeta;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.MigratableResolver;
import org.apache.spark.shuffle.ShuffleBlockInfo;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.ShuffleDataBlockId;
import org.apache.spark.storage.ShuffleMergedBlockId;
import org.gristmill.core.format.ArrivingParcel;
import org.gristmill.core.home.InFile;
import org.gristmill.core.home.PageStore;
import org.gristmill.core.plan.Settings;
import org.gristmill.spark.node.ExecutorNode;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.List;
import scala.collection.immutable.Seq;

/**
 * Where Spark's block transfer hands over to us: fetches of our names read the store, uploads of our names are parcels
 * for it. Everything else belongs to shuffles that fell back, and goes to the sort shuffle's resolver.
 */
final class GristmillResolver implements ShuffleBlockResolver, MigratableResolver {
  private final Supplier<ExecutorNode> node;
  private final IndexShuffleBlockResolver sort;
  private final int readBytes;
  private final TransportConf transport;

  GristmillResolver(SparkConf conf, Settings settings, Supplier<ExecutorNode> node, IndexShuffleBlockResolver sort) {
    this.node = node;
    this.sort = sort;
    readBytes = settings.size(Settings.READ_BYTES);
    transport = SparkTransportConf.fromSparkConf(conf, "shuffle", 0, Option.empty(), Option.empty());
  }

  @Override
  public ManagedBuffer getBlockData(BlockId id, Option<String[]> dirs) {
    if (!BlockNames.isOurs(id)) {
      return sort.getBlockData(id, dirs);
    }
    ShuffleBlockId range = (ShuffleBlockId) id;
    PageStore store = node.get().store();
    int shuffle = range.shuffleId();
    int partition = BlockNames.partition(range);
    int bytes = range.reduceId();
    try {
      if (bytes == 0) {
        return new NioManagedBuffer(ByteBuffer.wrap(store.index(shuffle, partition).encode()));
      }
      long offset = BlockNames.offset(range);
      int bytesMax = Math.max(readBytes, store.largestSegment(shuffle, partition));
      if (bytes < 0 || bytes > bytesMax) {
        throw new IOException("a reader asks for " + bytes + " bytes at a time, at most " + bytesMax + " are given ("
            + Settings.READ_BYTES.key() + ")");
      }
      InFile found = store.file(shuffle, partition, offset, bytes);
      return found != null
          ? new FileSegmentManagedBuffer(transport, found.file(), found.offset(), bytes)
          : new NioManagedBuffer(ByteBuffer.wrap(store.read(shuffle, partition, offset, bytes)));
    } catch (IOException e) {
      throw new IllegalStateException("partition " + partition + " of shuffle " + shuffle + " is not here: " + e.getMessage(), e);
    }
  }

  @Override
  public StreamCallbackWithID putShuffleBlockAsStream(BlockId id, SerializerManager serializerManager) {
    if (!BlockNames.isOurs(id)) {
      return sort.putShuffleBlockAsStream(id, serializerManager);
    }
    ArrivingParcel parcel = new ArrivingParcel(((ShuffleDataBlockId) id).reduceId());
    return new StreamCallbackWithID() {
      @Override
      public String getID() {
        return id.name();
      }

      @Override
      public void onData(String stream, ByteBuffer data) throws IOException {
        parcel.add(data);
      }

      @Override
      public void onComplete(String stream) throws IOException {
        try {
          node.get().receive(parcel.segments());
        } catch (Error e) { // which Spark does not answer; the sender would wait
          throw new IOException("a parcel could not be taken in: " + e, e);
        }
      }

      @Override
      public void onFailure(String stream, Throwable cause) {
        // The sender hears of it too, and sends again.
      }
    };
  }

  @Override
  public Seq<ManagedBuffer> getMergedBlockData(ShuffleMergedBlockId id, Option<String[]> dirs) {
    return sort.getMergedBlockData(id, dirs);
  }

  @Override
  public MergedBlockMeta getMergedBlockMeta(ShuffleMergedBlockId id, Option<String[]> dirs) {
    return sort.getMergedBlockMeta(id, dirs);
  }

  @Override
  public Seq<BlockId> getBlocksForShuffle(int shuffle, long mapId) {
    return sort.getBlocksForShuffle(shuffle, mapId);
  }

  // Spark calls these where an executor is being decommissioned, to move its blocks to others.

  /**
   * Called again and again, the last time after the last task has ended; the executor does not end before that call
   * returns. Partitions of ours move to others meanwhile. Spark is left the blocks of shuffles that fell back.
   */
  @Override
  public Seq<ShuffleBlockInfo> getStoredShuffles() {
    try {
      node.get().handOver();
    } catch (Throwable e) { // Spark's RPC throws checked exceptions without saying so, and after one here Spark would move nothing
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      LOG.warn("This executor is being decommissioned and could not hand over its partitions; maps will run again for what a reader does"
          + " not find", e);
    }
    return sort.getStoredShuffles();
  }

  @Override
  public void addShuffleToSkip(int shuffle) {
    sort.addShuffleToSkip(shuffle);
  }

  @Override
  public List<Tuple2<BlockId, ManagedBuffer>> getMigrationBlocks(ShuffleBlockInfo info) {
    return sort.getMigrationBlocks(info);
  }

  @Override
  public void stop() {
    sort.stop();
  }
}
