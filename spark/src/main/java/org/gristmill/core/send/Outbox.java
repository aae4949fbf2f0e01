package org.gristmill.core.send;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import org.gristmill.core.lifecycle.MonitoredThread;
import org.gristmill.core.lifecycle.UnavailableException;
import org.gristmill.core.plan.Plan;

/**
 * Early merge and early shuffle at the sending side. Segments of all map tasks of this executor queue up per partition;
 * one thread sends them to the homes that the plan names, asynchronously, within a window of bytes per home. Where
 * partitions have a replica each has a second queue, for that; a segment's memory is free when its last copy has
 * arrived.
 *
 * <p>Once a plan is known, the outbox sends, in this order:
 * <ol>
 * <li>a partition that has a full page;
 * <li>if the pool is pressed (over the threshold, or a writer waits): any partition, the fullest first;
 * <li>if the shuffle is being flushed: everything;
 * <li>if nothing was sent for a while: every partition with an eighth of a page, so that little is left when the last
 *     map ends.
 * </ol>
 * A parcel that fails goes back to the front of its queues, so that a changed plan sends it elsewhere; after
 * {@code triesMax} failures in a row its segments are dropped and readers will find them missing. A segment may so
 * arrive twice; readers take one. A parcel of which nothing is heard for {@code timeoutMs} has failed.
 *
 * <p>Should the thread end, or its books not add up, the outbox is broken: its pages are freed, flushes fail, and so
 * does every {@link #add} from then on, with the exception of that thread.
 */
public final class Outbox implements AutoCloseable {
  private static final int IDLE_MS = 100;
  private static final int IDLE_PART = 8; // of a page

  /** Moves a parcel, given as its segments, to an executor; the future completes when the home has it. */
  public interface Transport {
    CompletableFuture<Void> send(String home, int shuffle, List<byte[]> parcel);
  }

  /** Sizes that steer the outbox; see the configuration table. {@code copies} is 2 if plans name replicas. */
  public record Limits(int pageBytes, int parcelBytes, long windowBytes, double threshold, int triesMax, long retryMs,
      long timeoutMs, int copies) {}

  /** A segment's bytes, and in how many queues and parcels they are. */
  private static final class SharedSegment {
    final byte[] segment;
    int copies;

    SharedSegment(byte[] segment, int copies) {
      this.segment = segment;
      this.copies = copies;
    }
  }

  private record QueuedSegment(SharedSegment shared, int tries) {
    byte[] segment() {
      return shared.segment;
    }
  }

  private static final class Queue {
    final ArrayDeque<QueuedSegment> segments = new ArrayDeque<>();
    long bytes;
  }

  /** Queue p is for the home of partition p, queue ~p for its replica. */
  private static final class Shuffle {
    final Map<Integer, Queue> queues = new HashMap<>();
    final List<CompletableFuture<Boolean>> flushes = new ArrayList<>();
    Plan plan;
    boolean planWanted;
    long queuedBytes;
    long inFlightBytes;
    long retryAt;
    boolean lost;

    String target(int queue) {
      return queue >= 0 ? plan.homes()[queue] : plan.replicas()[~queue];
    }
  }

  private record Parcel(int id, Shuffle shuffle, String home, Map<Integer, List<QueuedSegment>> segments, long bytes) {
    List<byte[]> flat() {
      return segments.values().stream().flatMap(List::stream).map(QueuedSegment::segment).toList();
    }
  }

  private final PagePool pool;
  private final Transport transport;
  private final IntConsumer planWanted;
  private final Limits limits;
  private final Map<Integer, Shuffle> shuffles = new HashMap<>();
  private final Map<String, Long> inFlight = new HashMap<>();
  private final Thread sender;
  private long parcels;
  private long earlyBytes;
  private long sentBytes;
  private long failedParcels;
  private long droppedSegments;
  private long composedAt = System.nanoTime();
  private boolean asleep; // the sender waits for whatever comes
  private boolean searched; // the sender waits, and has found nothing to send though the pool is pressed
  private UnavailableException broken;
  private boolean closed;

  /**
   * @param planWanted asked for the plan of a shuffle when pages must leave and none is known; {@link #plan} gets it
   *     later
   */
  public Outbox(PagePool pool, Transport transport, IntConsumer planWanted, Limits limits) {
    this.pool = pool;
    this.transport = transport;
    this.planWanted = planWanted;
    this.limits = limits;
    sender = new MonitoredThread("gristmill-sender", this::send, this::broke);
    sender.start();
  }

  /** Queues a sealed segment; waits while the page pool is used up. */
  public void add(int shuffle, int partition, byte[] segment) throws UnavailableException, InterruptedException {
    pool.acquire(segment.length, this::wake);
    synchronized (this) {
      if (broken != null) {
        pool.release(segment.length);
        throw new UnavailableException(broken.getMessage(), broken);
      }
      Shuffle s = shuffles.computeIfAbsent(shuffle, k -> new Shuffle());
      boolean twice = limits.copies > 1 && (s.plan == null || s.plan.hasReplica(partition));
      QueuedSegment queued = new QueuedSegment(new SharedSegment(segment, twice ? 2 : 1), 0);
      enqueue(s, partition, queued, false);
      if (twice) {
        enqueue(s, ~partition, queued, false);
      }
      if (asleep && s.plan != null || mayLeave(s, partition) || s.queues.containsKey(~partition) && mayLeave(s, ~partition)) {
        notifyAll();
      }
    }
  }

  /** Takes over a plan, unless a newer one is known. */
  public synchronized void plan(Plan plan) {
    Shuffle s = shuffles.computeIfAbsent(plan.shuffle(), k -> new Shuffle());
    if (s.plan == null || s.plan.epoch() < plan.epoch()) {
      s.plan = plan;
      s.retryAt = 0;
      for (int partition = 0; partition < plan.homes().length; partition++) {
        Queue queue = plan.hasReplica(partition) ? null : s.queues.remove(~partition);
        if (queue != null) { // the replica has become the home, which may not have these yet
          s.queuedBytes -= queue.bytes;
          int home = partition;
          queue.segments.forEach(w -> enqueue(s, home, w, false));
        }
      }
    }
    s.planWanted = false;
    notifyAll();
  }

  /**
   * Sends all that is queued; completes with true when everything has arrived, with false if segments had to be
   * dropped.
   */
  public synchronized CompletableFuture<Boolean> flush(int shuffle) {
    if (broken != null) {
      return CompletableFuture.failedFuture(broken);
    }
    Shuffle s = shuffles.get(shuffle);
    if (s == null || s.queuedBytes + s.inFlightBytes == 0) {
      return CompletableFuture.completedFuture(s == null || !s.lost);
    }
    CompletableFuture<Boolean> done = new CompletableFuture<>();
    s.flushes.add(done);
    notifyAll();
    return done;
  }

  /** Forgets a shuffle and frees its pages. */
  public synchronized void remove(int shuffle) {
    Shuffle s = shuffles.remove(shuffle);
    if (s != null) {
      s.queues.values().forEach(queue -> queue.segments.forEach(this::release));
      s.queuedBytes = 0;
      s.queues.clear();
      s.flushes.forEach(f -> f.complete(true));
      s.flushes.clear();
    }
  }

  /**
   * Parcels sent so far, their bytes, the bytes of them that left before a flush, parcels that failed, segments given
   * up.
   */
  public record Counters(long parcels, long sentBytes, long earlyBytes, long failedParcels, long droppedSegments) {}

  public synchronized Counters counters() {
    return new Counters(parcels, sentBytes, earlyBytes, failedParcels, droppedSegments);
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
  }

  private synchronized void wake() {
    notifyAll();
  }

  private void send() throws InterruptedException {
    for (Parcel parcel = next(); parcel != null; parcel = next()) {
      Parcel p = parcel;
      CompletableFuture<Void> sent;
      try {
        sent = transport.send(p.home, p.id, p.flat());
      } catch (Throwable e) { // Spark's transport throws checked exceptions without saying so, and errors where memory is short
        sent = CompletableFuture.failedFuture(e);
      }
      sent.orTimeout(limits.timeoutMs, TimeUnit.MILLISECONDS).whenComplete((ok, error) -> {
        try {
          delivered(p, error);
        } catch (Throwable e) {
          broke(new UnavailableException("a parcel for executor " + p.home + " could not be accounted for: " + e, e));
        }
      });
    }
  }

  /** Nothing will be sent any more. */
  private synchronized void broke(UnavailableException cause) {
    if (broken != null || closed) {
      return;
    }
    broken = cause;
    List<Shuffle> all = List.copyOf(shuffles.values());
    shuffles.clear();
    all.forEach(s -> s.flushes.forEach(flush -> flush.completeExceptionally(cause)));
    all.forEach(s -> s.queues.values().forEach(queue -> queue.segments.forEach(this::release)));
  }

  private synchronized void delivered(Parcel parcel, Throwable error) {
    Shuffle s = parcel.shuffle;
    inFlight.merge(parcel.home, -parcel.bytes, Long::sum);
    s.inFlightBytes -= parcel.bytes;
    boolean removed = shuffles.get(parcel.id) != s;
    if (error == null || removed) {
      parcel.segments.values().forEach(segments -> segments.forEach(this::release));
      sentBytes += parcel.bytes;
      earlyBytes += s.flushes.isEmpty() ? parcel.bytes : 0;
    } else {
      failedParcels++;
      s.retryAt = System.nanoTime() + limits.retryMs * 1_000_000;
      parcel.segments.forEach((queue, segments) -> requeueFailed(s, queue, parcel.home, segments));
    }
    settle(s);
    notifyAll();
  }

  private void requeueFailed(Shuffle s, int queue, String home, List<QueuedSegment> segments) {
    int to = queue >= 0 || s.plan.hasReplica(~queue) ? queue : ~queue;
    boolean moved = !s.target(to).equals(home);
    for (int i = segments.size() - 1; i >= 0; i--) {
      QueuedSegment w = segments.get(i);
      int tries = moved ? 0 : w.tries + 1; // at the home where it goes now
      if (tries >= limits.triesMax) {
        s.lost = true;
        droppedSegments++;
        release(w);
      } else {
        enqueue(s, to, new QueuedSegment(w.shared, tries), true);
      }
    }
  }

  private void release(QueuedSegment w) {
    if (--w.shared.copies == 0) {
      pool.release(w.segment().length);
    }
  }

  private static void enqueue(Shuffle s, int id, QueuedSegment w, boolean front) {
    Queue queue = s.queues.computeIfAbsent(id, k -> new Queue());
    if (front) {
      queue.segments.addFirst(w);
    } else {
      queue.segments.addLast(w);
    }
    queue.bytes += w.segment().length;
    s.queuedBytes += w.segment().length;
  }

  private static void settle(Shuffle s) {
    if (s.queuedBytes + s.inFlightBytes == 0) {
      s.flushes.forEach(f -> f.complete(!s.lost));
      s.flushes.clear();
    }
  }

  /**
   * Whether the sender must look at what was just queued. It is not woken for each segment: while the pool is pressed
   * and all homes that it sends to have their windows full, that would be often, and for nothing.
   */
  private boolean mayLeave(Shuffle s, int queue) {
    boolean pressed = pool.pressed(limits.threshold);
    if (s.plan == null) {
      return pressed && !s.planWanted;
    }
    boolean room = hasRoom(s.target(queue));
    return pressed ? room || !searched : room && s.queues.get(queue).bytes >= limits.pageBytes;
  }

  private boolean hasRoom(String home) {
    return inFlight.getOrDefault(home, 0L) < limits.windowBytes;
  }

  /** Waits for a parcel that may leave now, and takes it out of its queues; null when closed. */
  private synchronized Parcel next() throws InterruptedException {
    while (!closed) {
      searched = false;
      long now = System.nanoTime();
      long wake = Long.MAX_VALUE;
      long idleFrom = composedAt + IDLE_MS * 1_000_000L;
      int worthBytes = now < idleFrom ? limits.pageBytes : Math.max(1, limits.pageBytes / IDLE_PART); // an empty queue has nothing to send
      boolean pressed = pool.pressed(limits.threshold);
      for (Map.Entry<Integer, Shuffle> e : shuffles.entrySet()) {
        Shuffle s = e.getValue();
        boolean all = pressed || !s.flushes.isEmpty();
        if (s.queuedBytes == 0) {
          continue;
        }
        if (s.plan == null) {
          if (all && !s.planWanted) {
            s.planWanted = true;
            planWanted.accept(e.getKey());
          }
          continue;
        }
        if (s.retryAt > now) {
          wake = Math.min(wake, s.retryAt);
          continue;
        }
        Parcel parcel = compose(e.getKey(), s, all ? 1 : worthBytes);
        if (parcel != null) {
          composedAt = now;
          return parcel;
        }
        wake = Math.min(wake, now < idleFrom ? idleFrom : now + IDLE_MS * 1_000_000L);
      }
      searched = pressed;
      if (wake == Long.MAX_VALUE) {
        asleep = true;
        wait();
        asleep = false;
      } else {
        wait(Math.max(1, (wake - now) / 1_000_000));
      }
    }
    return null;
  }

  /** The fullest queues with at least {@code bytesMin} whose executor has room in its window, all for one executor. */
  private Parcel compose(int id, Shuffle s, long bytesMin) {
    List<Integer> fullestFirst = new ArrayList<>();
    s.queues.forEach((number, queue) -> {
      if (queue.bytes >= bytesMin && hasRoom(s.target(number))) {
        fullestFirst.add(number);
      }
    });
    if (fullestFirst.isEmpty()) {
      return null;
    }
    fullestFirst.sort((a, b) -> Long.compare(s.queues.get(b).bytes, s.queues.get(a).bytes));
    String home = s.target(fullestFirst.get(0));
    Map<Integer, List<QueuedSegment>> taken = new HashMap<>();
    long bytes = 0;
    for (int number : fullestFirst) {
      if (s.target(number).equals(home)) {
        Queue queue = s.queues.get(number);
        List<QueuedSegment> segments = new ArrayList<>();
        while (!queue.segments.isEmpty() && (bytes == 0 || bytes + queue.segments.peek().segment().length <= limits.parcelBytes)) {
          QueuedSegment w = queue.segments.poll();
          segments.add(w);
          bytes += w.segment().length;
          queue.bytes -= w.segment().length;
        }
        if (!segments.isEmpty()) {
          taken.put(number, segments);
        }
        if (bytes >= limits.parcelBytes) {
          break;
        }
      }
    }
    s.queuedBytes -= bytes;
    s.inFlightBytes += bytes;
    inFlight.merge(home, bytes, Long::sum);
    parcels++;
    return new Parcel(id, s, home, taken, bytes);
  }
}
