package org.gristmill.core.read;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.home.PageStore;

/** A partition at its home, to be read in pieces: from the store of this executor, or from another executor. */
public interface PartitionSource {
  int shuffle();

  int partition();

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
}
