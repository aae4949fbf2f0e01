package org.gristmill.core.read;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.gristmill.core.plan.Settings;

/**
 * The limit of a wait for data of another executor: the time-out since anything last came from there, and at most ten
 * time-outs in all. Pieces queue up at a home from which many tasks read, so one piece may take longer than the
 * time-out.
 */
public final class FetchTimeout {
  private static final int TIMEOUTS_MAX = 10;

  private final long timeoutMs;
  private final Map<String, Long> heardAt = new ConcurrentHashMap<>();

  public FetchTimeout(long timeoutMs) {
    this.timeoutMs = timeoutMs;
  }

  /** Something has come from this executor. */
  public void heard(String executor) {
    heardAt.put(executor, System.nanoTime());
  }

  /** Waits for an answer of an executor; {@code what} names it in the error. */
  public <T> T await(CompletableFuture<T> asked, String executor, String what) throws IOException {
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
        String cause = e.getCause().toString().lines().findFirst().orElse(""); // the text of a remote error includes its stack trace
        throw new IOException(what + " could not be read from executor " + executor + ": " + cause, e.getCause());
      }
    }
  }
}
