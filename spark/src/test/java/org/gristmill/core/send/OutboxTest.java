package org.gristmill.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristmill.core.format.Segment;
import org.gristmill.core.format.Segments;
import org.gristmill.core.lifecycle.UnavailableException;
import org.gristmill.core.plan.Plan;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class OutboxTest {
  /** A network that keeps what arrives, and can fail or hold parcels. */
  private static final class Net implements Outbox.Transport {
    final Map<String, List<Segment.Header>> arrived = new ConcurrentHashMap<>();
    final Set<String> dead = ConcurrentHashMap.newKeySet();
    final Set<String> refusing = ConcurrentHashMap.newKeySet();
    Random failing;

    @Override
    public synchronized CompletableFuture<Void> send(String home, int shuffle, List<byte[]> parcel) {
      if (refusing.contains(home)) {
        throw Net.<RuntimeException>unchecked(new IOException("refused")); // as Scala code may
      }
      if (dead.contains(home) || failing != null && failing.nextInt(3) == 0) {
        return CompletableFuture.failedFuture(new IOException("down"));
      }
      try {
        List<Segment.Header> headers = arrived.computeIfAbsent(home, k -> new ArrayList<>());
        for (byte[] segment : parcel) {
          headers.add(Segment.header(segment, 0, segment.length));
        }
      } catch (IOException e) {
        return CompletableFuture.failedFuture(e);
      }
      return CompletableFuture.completedFuture(null);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> E unchecked(Exception e) throws E {
      throw (E) e;
    }

    synchronized List<Segment.Header> at(String home) {
      return List.copyOf(arrived.getOrDefault(home, List.of()));
    }
  }

  private final Net net = new Net();
  private final List<Integer> wanted = Collections.synchronizedList(new ArrayList<>());
  private final PagePool pool = new PagePool(10_000, 100, 600_000, memory());
  private final Outbox outbox = new Outbox(pool, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 1));

  private static PagePool.Reservation memory() {
    return new PagePool.Reservation() {
      @Override
      public boolean acquire(long bytes) {
        return true;
      }

      @Override
      public void release(long bytes) {}
    };
  }

  @AfterEach
  void close() {
    outbox.close();
  }

  @Test
  void nothingLeavesBeforeThePlan() throws Exception {
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(2000)));
    Thread.sleep(50);
    assertEquals(List.of(), net.at("a"));
    outbox.plan(new Plan(1, 1, new String[] {"a"}));
    outbox.flush(1).get(60, TimeUnit.SECONDS);
    assertEquals(1, net.at("a").size());
  }

  @Test
  void aFullPageLeavesByItselfAndOthersWaitForTheFlush() throws Exception {
    outbox.plan(new Plan(1, 1, new String[] {"a", "b"}));
    outbox.add(1, 1, Segments.segment(1, 1, 0, 0, 0, true, "small"));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(1000)));
    while (net.at("a").isEmpty()) {
      Thread.sleep(5);
    }
    assertEquals(List.of(), net.at("b"));
    assertTrue(outbox.flush(1).get(60, TimeUnit.SECONDS));
    assertEquals(1, net.at("b").size());
    assertEquals(0, pool.usedBytes());
  }

  @Test
  void aSenderWithNothingToDoSendsWhatIsWorthAParcel() throws Exception {
    outbox.plan(new Plan(1, 1, new String[] {"a", "b"}));
    outbox.add(1, 1, Segments.segment(1, 1, 0, 0, 0, true, "small"));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(200)));
    while (net.at("a").isEmpty()) {
      Thread.sleep(5);
    }
    outbox.add(1, 0, Segments.segment(1, 0, 1, 1, 0, true, "y".repeat(200)));
    while (net.at("a").size() < 2) {
      Thread.sleep(5);
    }
    assertEquals(List.of(), net.at("b"));
  }

  @Test
  void aPressedPoolAsksForAPlanAndSendsPagesThatAreNotFull() throws Exception {
    for (int p = 0; p < 20; p++) {
      outbox.add(1, p, Segments.segment(1, p, 0, 0, 0, true, "x".repeat(400)));
    }
    while (wanted.isEmpty()) {
      Thread.sleep(5);
    }
    assertEquals(List.of(1), wanted);
    outbox.plan(new Plan(1, 1, "aaaaaaaaaaaaaaaaaaaa".split("")));
    while (pool.pressed(0.8)) {
      Thread.sleep(5);
    }
    assertFalse(net.at("a").isEmpty());
  }

  /** The writer's own page makes the pool full: the sender must look again, or both would wait. */
  @Test
  void aWriterThatWaitsWakesTheSender() throws Exception {
    outbox.plan(new Plan(1, 1, new String[] {"a"}));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, false, "x".repeat(900)));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 1, true, "x".repeat(9500)));
    outbox.flush(1).get(60, TimeUnit.SECONDS);
    assertEquals(2, net.at("a").size());
    assertEquals(0, pool.overdrafts());
  }

  /** On a busy machine the new plan can come after any number of tries. */
  @Test
  void pagesForALostHomeGoToTheNewOne() throws Exception {
    try (Outbox patient = new Outbox(pool, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 1_000_000, 1, 240_000, 1))) {
      net.dead.add("a");
      patient.plan(new Plan(1, 1, new String[] {"a"}));
      patient.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(1000)));
      while (patient.counters().failedParcels() == 0) {
        Thread.sleep(1);
      }
      patient.plan(new Plan(1, 2, new String[] {"b"}));
      assertTrue(patient.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(1, net.at("b").size());
    }
  }

  /**
   * A home that was being decommissioned refused a segment all but once; the next failure, at its new home, dropped it.
   */
  @Test
  void triesAtAHomeThatHasMovedDoNotCountAtTheNewOne() throws Exception {
    CompletableFuture<Void> last = new CompletableFuture<>();
    AtomicInteger sent = new AtomicInteger();
    Outbox.Transport transport = (home, shuffle, parcel) -> switch (sent.incrementAndGet()) {
      case 1 -> last; // fails when the partition has moved
      case 2 -> CompletableFuture.failedFuture(new IOException("the new home is busy"));
      default -> CompletableFuture.completedFuture(null);
    };
    try (Outbox box = new Outbox(pool, transport, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 2, 1, 240_000, 1))) {
      box.plan(new Plan(1, 1, new String[] {"a"}));
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(1000)));
      while (sent.get() == 0) {
        Thread.sleep(1);
      }
      box.plan(new Plan(1, 2, new String[] {"b"}));
      last.completeExceptionally(new IOException("refused"));
      assertTrue(box.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(3, sent.get());
    }
  }

  @Test
  void segmentsThatCannotBeDeliveredAreDroppedAndReported() throws Exception {
    net.dead.add("a");
    outbox.plan(new Plan(1, 1, new String[] {"a"}));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
    assertFalse(outbox.flush(1).get(60, TimeUnit.SECONDS));
    assertEquals(1, outbox.counters().droppedSegments());
    assertEquals(0, pool.usedBytes());
  }

  /**
   * A thread of ours that dies takes its executor with it, and with that one every other that sends to the same home.
   */
  @Test
  void aTransportThatThrowsCheckedExceptionsIsADeliveryThatFailed() throws Exception {
    net.refusing.add("a");
    outbox.plan(new Plan(1, 1, new String[] {"a"}));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
    assertFalse(outbox.flush(1).get(60, TimeUnit.SECONDS));
    net.refusing.remove("a");
    outbox.add(1, 0, Segments.segment(1, 0, 1, 1, 0, true, "y"));
    outbox.flush(1).get(60, TimeUnit.SECONDS);
    assertEquals(List.of(1), net.at("a").stream().map(Segment.Header::mapIndex).toList());
  }

  /**
   * Direct memory ran short: the error ended the sender's thread, and with it the executor, without a word about
   * shuffles.
   */
  @Test
  void aTransportThatThrowsErrorsIsADeliveryThatFailed() throws Exception {
    Outbox.Transport failing = (home, shuffle, parcel) -> {
      throw new OutOfMemoryError("no direct memory");
    };
    try (Outbox box = new Outbox(pool, failing, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 1))) {
      box.plan(new Plan(1, 1, new String[] {"a"}));
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
      assertFalse(box.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(4, box.counters().failedParcels());
      assertEquals(0, pool.usedBytes());
    }
  }

  /**
   * A home was stopped, or Spark lost the answer: nothing was heard of a parcel, and its pages were never free again.
   */
  @Test
  void aParcelOfWhichNothingIsHeardHasFailed() throws Exception {
    try (Outbox box = new Outbox(pool, (home, shuffle, parcel) -> new CompletableFuture<>(), wanted::add,
        new Outbox.Limits(1000, 2000, 4000, 0.8, 2, 1, 20, 1))) {
      box.plan(new Plan(1, 1, new String[] {"a"}));
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
      assertFalse(box.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(0, pool.usedBytes());
    }
  }

  /**
   * The sender's thread had ended. Map tasks waited for pages that never became free, and readers for a flush that
   * never ended.
   */
  @Test
  void aSenderThatHasEndedFailsFlushesAndWritersThatWaitOrCome() throws Exception {
    for (Throwable thrown : List.of(new IllegalStateException("a mistake"), new StackOverflowError("too deep"))) {
      PagePool small = new PagePool(1000, 100, 240_000, memory());
      Outbox box = new Outbox(small, net, shuffle -> OutboxTest.<RuntimeException>sneak(thrown),
          new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 1));
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "small"));
      CompletableFuture<Boolean> flush = box.flush(2); // of nothing: done
      assertTrue(flush.get(60, TimeUnit.SECONDS));
      UnavailableException e = assertThrows(UnavailableException.class,
          () -> box.add(1, 0, Segments.segment(1, 0, 0, 0, 1, true, "x".repeat(960)))); // waits for a page; the sender asks for a plan
      assertTrue(e.getMessage().contains("gristmill-sender") && e.getMessage().contains(thrown.getMessage()), e.toString());
      assertNull(e.getCause(), "an error among the causes would end the executor");
      assertThrows(UnavailableException.class, () -> box.add(1, 0, Segments.segment(1, 0, 0, 0, 2, true, "later")));
      assertSame(UnavailableException.class,
          assertThrows(ExecutionException.class, () -> box.flush(1).get(60, TimeUnit.SECONDS)).getCause().getClass());
      assertEquals(0, small.usedBytes());
    }
  }

  @Test
  void aFlushThatIsWaitedForFailsWhenTheSenderEnds() throws Exception {
    try (Outbox box = new Outbox(pool, net, shuffle -> OutboxTest.<RuntimeException>sneak(new LinkageError("no such method")),
        new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 1))) {
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "small"));
      ExecutionException e = assertThrows(ExecutionException.class, () -> box.flush(1).get(60, TimeUnit.SECONDS));
      assertTrue(e.getCause().getMessage().contains("no such method"), e.toString());
    }
  }

  /** An exception on a parcel's arrival went nowhere, and the flush that counted on it was never done. */
  @Test
  void anArrivalThatCannotBeAccountedForFailsTheFlush() throws Exception {
    PagePool refusing = new PagePool(1000, 100, 240_000, new PagePool.Reservation() {
      @Override
      public boolean acquire(long bytes) {
        return true;
      }

      @Override
      public void release(long bytes) {
        throw new IllegalStateException("memory that is not ours");
      }
    });
    try (Outbox box = new Outbox(refusing, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 1))) {
      box.plan(new Plan(1, 1, new String[] {"a"}));
      box.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
      ExecutionException e = assertThrows(ExecutionException.class, () -> box.flush(1).get(60, TimeUnit.SECONDS));
      assertTrue(e.getCause().getMessage().contains("memory that is not ours"), e.toString());
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void sneak(Throwable e) throws E {
    throw (E) e;
  }

  @Test
  void anOlderPlanDoesNotReplaceANewerOne() throws Exception {
    outbox.plan(new Plan(1, 2, new String[] {"b"}));
    outbox.plan(new Plan(1, 1, new String[] {"a"}));
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x"));
    outbox.flush(1).get(60, TimeUnit.SECONDS);
    assertEquals(1, net.at("b").size());
  }

  @Test
  void aRemovedShuffleFreesItsPages() throws Exception {
    outbox.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "x".repeat(500)));
    outbox.remove(1);
    assertEquals(0, pool.usedBytes());
  }

  @Test
  void everySegmentGoesToItsReplicaTooAndThenItsMemoryIsFree() throws Exception {
    try (Outbox twice = new Outbox(pool, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 4, 1, 240_000, 2))) {
      twice.add(1, 0, Segments.segment(1, 0, 0, 0, 0, true, "before the plan"));
      twice.plan(new Plan(1, 1, new String[] {"a", "b"}, new String[] {"b", ""}));
      twice.add(1, 1, Segments.segment(1, 1, 0, 0, 0, true, "no replica"));
      assertTrue(twice.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(List.of(0), net.at("a").stream().map(Segment.Header::partition).toList());
      assertEquals(List.of(0, 1), net.at("b").stream().map(Segment.Header::partition).sorted().toList());
      assertEquals(0, pool.usedBytes());
    }
  }

  /**
   * Segments on their way to the lost home, or to the replica that has taken over, arrive there; some of them twice.
   */
  @Test
  void aReplicaThatTakesOverGetsEverySegment() throws Exception {
    try (Outbox twice = new Outbox(pool, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 1_000_000, 1, 240_000, 2))) {
      net.dead.addAll(List.of("a", "b"));
      twice.plan(new Plan(1, 1, new String[] {"a"}, new String[] {"b"}));
      for (int s = 0; s < 5; s++) {
        twice.add(1, 0, Segments.segment(1, 0, 0, 0, s, s == 4, "x".repeat(300)));
      }
      while (twice.counters().failedParcels() < 2) {
        Thread.sleep(1);
      }
      twice.plan(new Plan(1, 2, new String[] {"b"}));
      net.dead.remove("b");
      assertTrue(twice.flush(1).get(60, TimeUnit.SECONDS));
      assertEquals(List.of(0, 1, 2, 3, 4), net.at("b").stream().map(Segment.Header::sequence).distinct().sorted().toList());
      assertEquals(0, pool.usedBytes());
    }
  }

  /**
   * Three writers, a network that fails a third of the parcels: after the flush every segment has arrived at its home.
   */
  @Test
  void everySegmentArrivesOverAFailingNetwork() throws Exception {
    net.failing = new Random(7);
    PagePool small = new PagePool(20_000, 100, 600_000, memory());
    Outbox box = new Outbox(small, net, wanted::add, new Outbox.Limits(1000, 2000, 4000, 0.8, 1_000_000, 1, 240_000, 1));
    String[] homes = "abcabcabca".split("");
    box.plan(new Plan(1, 1, homes));
    List<Thread> writers = new ArrayList<>();
    for (int w = 0; w < 3; w++) {
      int map = w;
      writers.add(new Thread(() -> {
        try {
          for (int s = 0; s < 300; s++) {
            box.add(1, s % 10, Segments.segment(1, s % 10, map, map, s / 10, s >= 290, "x".repeat(s)));
          }
        } catch (UnavailableException e) {
          throw new IllegalStateException(e);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }));
    }
    writers.forEach(Thread::start);
    for (Thread writer : writers) {
      writer.join();
    }
    assertTrue(box.flush(1).get(60, TimeUnit.SECONDS));
    Map<List<Integer>, Integer> seen = new TreeMap<>(Comparator.comparing(Object::toString));
    for (String home : List.of("a", "b", "c")) {
      for (Segment.Header h : net.at(home)) {
        assertEquals(homes[h.partition()], home);
        seen.merge(List.of(h.mapIndex(), h.partition(), h.sequence()), 1, Integer::sum);
      }
    }
    assertEquals(900, seen.size());
    assertEquals(0, small.usedBytes());
    assertEquals(new HashSet<>(List.of()), new HashSet<>(wanted));
    box.close();
  }
}
