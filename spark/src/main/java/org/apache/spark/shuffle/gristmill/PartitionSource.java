package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.gristmill.core.Coordinator;
import org.gristmill.core.PageStore;
import org.gristmill.core.PartitionIndex;

/** A partition at its home, to be read in pieces: this executor's own store, or another's over Spark's block transfer. */
interface PartitionSource {
  PartitionIndex index() throws IOException;

  CompletableFuture<byte[]> read(long offset, int length);

  boolean local();

  record Local(PageStore store, int shuffle, int partition) implements PartitionSource {
    @Override
    public PartitionIndex index() {
      return store.index(shuffle, partition);
    }

    @Override
    public CompletableFuture<byte[]> read(long offset, int length) {
      try {
        return CompletableFuture.completedFuture(store.read(shuffle, partition, offset, length));
      } catch (IOException e) {
        return CompletableFuture.failedFuture(e);
      }
    }

    @Override
    public boolean local() {
      return true;
    }
  }

  record Remote(BlockTransferService service, Coordinator.Executor home, int shuffle, int partition)
      implements PartitionSource {
    @Override
    public PartitionIndex index() throws IOException {
      try {
        return PartitionIndex.decode(ByteBuffer.wrap(fetch(BlockNames.index(shuffle, partition)).get()));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IOException("interrupted while waiting for the index of a partition", e);
      } catch (ExecutionException e) {
        throw new IOException("executor " + home.id() + " did not give the index of partition " + partition, e.getCause());
      }
    }

    @Override
    public CompletableFuture<byte[]> read(long offset, int length) {
      return fetch(BlockNames.range(shuffle, partition, offset, length));
    }

    @Override
    public boolean local() {
      return false;
    }

    private CompletableFuture<byte[]> fetch(String block) {
      CompletableFuture<byte[]> result = new CompletableFuture<>();
      service.fetchBlocks(home.host(), home.port(), home.id(), new String[] {block}, new BlockFetchingListener() {
        @Override
        public void onBlockFetchSuccess(String id, ManagedBuffer data) {
          try {
            ByteBuffer from = data.nioByteBuffer();
            byte[] bytes = new byte[from.remaining()];
            from.get(bytes);
            result.complete(bytes);
          } catch (IOException e) {
            result.completeExceptionally(e);
          }
        }

        @Override
        public void onBlockFetchFailure(String id, Throwable error) {
          result.completeExceptionally(error);
        }
      }, null);
      return result;
    }
  }

  /** The source for a partition whose home is {@code home}. */
  static PartitionSource of(ExecutorNode node, BlockTransferService service, Coordinator.Executor home, int shuffle,
      int partition) {
    return home.id().equals(node.executorId()) ? new Local(node.store(), shuffle, partition)
        : new Remote(service, home, shuffle, partition);
  }
}
