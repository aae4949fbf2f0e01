package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.read.FetchTimeout;
import org.gristmill.core.read.PartitionSource;

/** A partition on another executor, read over Spark's block transfer. */
record RemoteSource(BlockTransferService service, FetchTimeout timeout, Executor home, int shuffle, int partition)
    implements PartitionSource {
  private static final int ANY = -1;

  @Override
  public PartitionIndex index() throws IOException {
    byte[] bytes = timeout.await(fetch(BlockNames.index(shuffle, partition), ANY), home.id(), "the index of partition " + partition);
    return PartitionIndex.decode(ByteBuffer.wrap(bytes));
  }

  @Override
  public CompletableFuture<byte[]> read(long offset, int length) {
    return fetch(BlockNames.range(shuffle, partition, offset, length), length);
  }

  @Override
  public byte[] await(CompletableFuture<byte[]> read) throws IOException {
    return timeout.await(read, home.id(), "a piece of partition " + partition);
  }

  @Override
  public boolean local() {
    return false;
  }

  /** @param length that the block must have, or ANY */
  private CompletableFuture<byte[]> fetch(String block, int length) {
    CompletableFuture<byte[]> result = new CompletableFuture<>();
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
          result.complete(bytes);
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
