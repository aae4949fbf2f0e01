package org.gristmill.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class PagePoolTest {
  private static final class Ledger implements PagePool.Reservation {
    final AtomicLong reserved = new AtomicLong();
    volatile long limit = Long.MAX_VALUE;

    @Override
    public boolean acquire(long bytes) {
      return reserved.addAndGet(bytes) <= limit || reserved.addAndGet(-bytes) < 0;
    }

    @Override
    public void release(long bytes) {
      reserved.addAndGet(-bytes);
    }
  }

  @Test
  void aWriterWaitsUntilAPageIsFree() throws Exception {
    PagePool pool = new PagePool(100, 10, 600_000, new Ledger());
    pool.acquire(90, () -> {});
    CountDownLatch waits = new CountDownLatch(1);
    CountDownLatch through = new CountDownLatch(1);
    Thread writer = new Thread(() -> {
      try {
        pool.acquire(20, waits::countDown);
        through.countDown();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    writer.start();
    waits.await();
    assertTrue(pool.pressed(1.0));
    assertFalse(through.await(50, TimeUnit.MILLISECONDS));
    pool.release(90);
    assertTrue(through.await(60, TimeUnit.SECONDS));
    writer.join();
    assertEquals(20, pool.usedBytes());
    assertTrue(pool.waitNanos() > 0);
  }

  @Test
  void whenNothingComesFreeTheWaiterGoesOverBudget() throws Exception {
    PagePool pool = new PagePool(100, 10, 30, new Ledger());
    pool.acquire(100, () -> {});
    pool.acquire(50, () -> {});
    assertEquals(150, pool.usedBytes());
    assertEquals(1, pool.overdrafts());
  }

  @Test
  void aSegmentLargerThanTheBudgetPassesWhenThePoolIsEmpty() throws Exception {
    PagePool pool = new PagePool(100, 10, 600_000, new Ledger());
    pool.acquire(1000, () -> {});
    assertEquals(1000, pool.usedBytes());
    assertEquals(0, pool.overdrafts());
  }

  @Test
  void memoryIsReservedInGrainsAndGivenBack() throws Exception {
    Ledger ledger = new Ledger();
    PagePool pool = new PagePool(100, 10, 600_000, ledger);
    pool.acquire(11, () -> {});
    assertEquals(20, ledger.reserved.get());
    pool.acquire(9, () -> {});
    assertEquals(20, ledger.reserved.get());
    pool.release(20);
    assertEquals(0, ledger.reserved.get());
  }

  /** Spark may have no memory to give: one segment at a time must still get through. */
  @Test
  void aRefusedReservationSlowsButDoesNotStop() throws Exception {
    Ledger ledger = new Ledger();
    ledger.limit = 0;
    PagePool pool = new PagePool(100, 10, 30, ledger);
    pool.acquire(10, () -> {});
    pool.acquire(10, () -> {});
    assertEquals(1, pool.overdrafts());
    pool.release(20);
    assertEquals(0, ledger.reserved.get());
  }
}
