package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.read.FetchTimeout;
import org.gristmill.core.read.PartitionSource;

/** A partition on another executor, read over Spark's block transfer. */
record RemoteSource(BlockTransferService service, FetchTimeout timeout, ShuffleReadMetricsReporter metrics, Executor home, int shuffle,
    int partition) implements PartitionSource {
  private static final int ANY = -1;

  /** A block that was asked for, and how long it took to come. */
  private static final class Request extends CompletableFuture<byte[]> {
    private final long asked = System.nanoTime();
    private volatile long tookMs;

    void arrived(byte[] bytes) {
      tookMs = (System.nanoTime() - asked) / 1_000_000;
      complete(bytes);
    }
  }

  @Override
  public PartitionIndex index() throws IOException {
    long start = System.nanoTime();
    byte[] bytes = counted(fetch(BlockNames.index(shuffle, partition), ANY), "the index of partition " + partition);
    metrics.incFetchWaitTime((System.nanoTime() - start) / 1_000_000);
    return PartitionIndex.decode(ByteBuffer.wrap(bytes));
  }

  @Override
  public CompletableFuture<byte[]> read(long offset, int length) {
    return fetch(BlockNames.range(shuffle, partition, offset, length), length);
  }

  @Override
  public byte[] await(CompletableFuture<byte[]> read) throws IOException {
    return counted((Request) read, "a piece of partition " + partition);
  }

  /** Counts by the thread that waits, which is the task's: its metrics are for one thread. */
  private byte[] counted(Request request, String what) throws IOException {
    byte[] bytes = timeout.await(request, home.id(), what);
    metrics.incRemoteReqsDuration(request.tookMs);
    return bytes;
  }

  @Override
  public boolean local() {
    return false;
  }

  /** @param length that the block must have, or ANY */
  private Request fetch(String block, int length) {
    Request result = new Request();
    BlockFetchingListener listener = new BlockFetchingListener() {
      @Override
      public void onBlockFetchSuccess(String id, ManagedBuffer data) {
        timeout.heard(home.id());
        try {
          if (length != ANY && data.size() != length) {
            throw new IOException("asked for " + length + " bytes, got " + data.size());
          }
          ByteBuffer from = data.nioByteBuffer();
          byte[] bytes = new byte[from.remaining()];
          from.get(bytes);
          result.arrived(bytes);
        } catch (Throwable e) {
          result.completeExceptionally(e);
        }
      }

      @Override
      public void onBlockFetchFailure(String id, Throwable error) {
        result.completeExceptionally(error);
      }
    };
    try {
      service.fetchBlocks(home.host(), home.port(), home.id(), new String[] {block}, listener, null);
    } catch (Throwable e) {
      result.completeExceptionally(e);
    }
    return result;
  }
}
