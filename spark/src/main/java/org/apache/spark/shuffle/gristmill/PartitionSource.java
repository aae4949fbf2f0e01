package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.spark.network.BlockTransferService;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.gristmill.core.Coordinator;
import org.gristmill.core.PageStore;
import org.gristmill.core.PartitionIndex;

/** A partition at its home, to be read in pieces: this executor's own store, or another's over Spark's block transfer. */
interface PartitionSource {
  PartitionIndex index() throws IOException;

  /** Asks for a piece; {@link #await} gives it. */
  CompletableFuture<byte[]> read(long offset, int length);

  /** The bytes of a piece that was asked for. The wait has an end. */
  byte[] await(CompletableFuture<byte[]> read) throws IOException;

  boolean local();

  record Local(PageStore store, int shuffle, int partition) implements PartitionSource {
    @Override
    public PartitionIndex index() throws IOException {
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
    public byte[] await(CompletableFuture<byte[]> read) throws IOException {
      try {
        return read.join(); // it is complete
      } catch (CompletionException e) {
        throw new IOException("a piece of partition " + partition + " could not be read: " + e.getCause(), e.getCause());
      }
    }

    @Override
    public boolean local() {
      return true;
    }
  }

  record Remote(BlockTransferService service, Patience patience, Coordinator.Executor home, int shuffle, int partition)
      implements PartitionSource {
    private static final int ANY = -1;

    @Override
    public PartitionIndex index() throws IOException {
      byte[] bytes = patience.await(fetch(BlockNames.index(shuffle, partition), ANY), home.id(), "the index of partition " + partition);
      return PartitionIndex.decode(ByteBuffer.wrap(bytes));
    }

    @Override
    public CompletableFuture<byte[]> read(long offset, int length) {
      return fetch(BlockNames.range(shuffle, partition, offset, length), length);
    }

    @Override
    public byte[] await(CompletableFuture<byte[]> read) throws IOException {
      return patience.await(read, home.id(), "a piece of partition " + partition);
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
          patience.heard(home.id());
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

  /** The source for a partition whose home is {@code home}. */
  static PartitionSource of(ExecutorNode node, BlockTransferService service, Coordinator.Executor home, int shuffle,
      int partition) {
    return home.id().equals(node.executorId()) ? new Local(node.store(), shuffle, partition)
        : new Remote(service, node.patience(), home, shuffle, partition);
  }
}
