package org.gristmill.core.send;

/**
 * The memory of an executor's pages: one budget for all its map tasks, from the moment a segment is written until it
 * has reached its home. A request waits while the budget is used up (OPS, procedure 1: allocateNewPage blocks).
 *
 * <p>Nothing can hang on it: what frees pages is the outbox, which needs no page to do so; and should no page come free
 * for {@code patienceMs}, the waiter is let through over budget and the event is counted.
 */
public final class PagePool {
  /** Where the budget's memory is really reserved (Spark's memory manager); grants all or nothing. */
  public interface Reservation {
    boolean acquire(long bytes);

    void release(long bytes);
  }

  private final long budgetBytes;
  private final int grainBytes;
  private final long patienceMs;
  private final Reservation reservation;
  private long usedBytes;
  private long reservedBytes;
  private long waitNanos;
  private long overdrafts;
  private long freed;
  private int waiting;

  /** @param grainBytes the reservation grows and shrinks in steps of this size */
  public PagePool(long budgetBytes, int grainBytes, long patienceMs, Reservation reservation) {
    this.budgetBytes = budgetBytes;
    this.grainBytes = grainBytes;
    this.patienceMs = patienceMs;
    this.reservation = reservation;
  }

  /**
   * Takes {@code bytes} of the budget; waits for them if need be. A request above the whole budget passes when the pool
   * is empty. {@code beforeWaiting} runs, outside of any lock of this pool, once the pool counts as pressed by this
   * request.
   */
  public void acquire(int bytes, Runnable beforeWaiting) throws InterruptedException {
    synchronized (this) {
      if (grant(bytes)) {
        return;
      }
      waiting++;
    }
    try {
      beforeWaiting.run();
      await(bytes);
    } finally {
      synchronized (this) {
        waiting--;
      }
    }
  }

  private synchronized void await(int bytes) throws InterruptedException {
    long start = System.nanoTime();
    long patience = patienceMs * 1_000_000;
    long deadline = start + patience;
    long seen = freed;
    while (!grant(bytes)) {
      long now = System.nanoTime();
      if (freed != seen) {
        seen = freed;
        deadline = now + patience;
      } else if (now >= deadline) {
        overdrafts++;
        usedBytes += bytes;
        break;
      }
      wait(Math.max(1, (deadline - now) / 1_000_000));
    }
    waitNanos += System.nanoTime() - start;
  }

  public synchronized void release(long bytes) {
    usedBytes -= bytes;
    freed += bytes;
    notifyAll(); // first: the waiting threads are awake even if the reservation throws
    long spare = reservedBytes - Math.max(usedBytes, 0);
    if (spare >= 2L * grainBytes || usedBytes == 0 && reservedBytes > 0) {
      long back = spare / grainBytes * grainBytes;
      reservedBytes -= back;
      reservation.release(back);
    }
  }

  /** True if a thread waits, or more than {@code share} of the budget is used. */
  public synchronized boolean pressed(double share) {
    return waiting > 0 || usedBytes > share * budgetBytes;
  }

  public synchronized long usedBytes() {
    return usedBytes;
  }

  public synchronized long waitNanos() {
    return waitNanos;
  }

  /** How often a waiter was let through over budget because nothing came free. */
  public synchronized long overdrafts() {
    return overdrafts;
  }

  private boolean grant(int bytes) {
    if (usedBytes > 0 && usedBytes + bytes > budgetBytes) {
      return false;
    }
    long missing = usedBytes + bytes - reservedBytes;
    if (missing > 0) {
      long step = (missing + grainBytes - 1) / grainBytes * grainBytes;
      if (reservation.acquire(step)) {
        reservedBytes += step;
      } else if (usedBytes > 0) {
        return false; // Spark has none to give: pages must leave first. An empty pool may always take one segment.
      }
    }
    usedBytes += bytes;
    return true;
  }
}
