package org.apache.spark.shuffle.gristmill;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristmill.core.Settings;

/**
 * How long tasks of this executor wait for what they have asked of another one: while anything comes from there, and then for the
 * time-out. Pieces queue up at a home that many read from, so a piece may take longer than that; but never ten times as long.
 */
final class Patience {
  private static final int TIMEOUTS_MAX = 10;

  private final long timeoutMs;
  private final Map<String, Long> heardAt = new ConcurrentHashMap<>();

  Patience(long timeoutMs) {
    this.timeoutMs = timeoutMs;
  }

  /** Something has come from this executor. */
  void heard(String executor) {
    heardAt.put(executor, System.nanoTime());
  }

  /** What was asked of an executor; {@code what} names it for the error. */
  <T> T await(CompletableFuture<T> asked, String executor, String what) throws IOException {
    long start = System.nanoTime();
    while (true) {
      long now = System.nanoTime();
      long heard = Math.max(start, heardAt.getOrDefault(executor, start));
      long leftMs = Math.min(timeoutMs - (now - heard) / 1_000_000, TIMEOUTS_MAX * timeoutMs - (now - start) / 1_000_000);
      try {
        return asked.get(Math.max(0, leftMs), TimeUnit.MILLISECONDS);
      } catch (TimeoutException e) {
        if (leftMs <= 0) {
          throw new IOException(what + " did not come from executor " + executor + " in " + (now - start) / 1_000_000 + " ms ("
              + Settings.TIMEOUT.key() + ")");
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IOException("interrupted while waiting for " + what, e);
      } catch (ExecutionException e) {
        String cause = e.getCause().toString().lines().findFirst().orElse(""); // what comes from there has its stack trace in the text
        throw new IOException(what + " could not be read from executor " + executor + ": " + cause, e.getCause());
      }
    }
  }
}
