package org.gristmill.spark.node;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.gristmill.core.driver.Announcer;
import org.gristmill.core.driver.Coordinator;
import org.gristmill.core.driver.MapOutputs;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.PlanUpdate;
import org.gristmill.core.plan.Recovery;

/**
 * The driver's part in the shuffle: hands the executors' messages to the {@link Coordinator}, tells executors its
 * plans, and has them flush. Messages are handled one at a time.
 */
public final class DriverNode implements Announcer {
  /** The line to one executor. */
  public interface ExecutorLine {
    void send(Message message);

    /** The answer, or the reason why there is none, by the time-out at the latest. Throws nothing. */
    CompletionStage<Message> ask(Message message, long timeoutMs);
  }

  /** A flush of one shuffle that began when the coordinator was at {@code version}. */
  private record Flushing(long version, CompletableFuture<Boolean> done) {}

  private final long timeoutMs;
  private final MapOutputs outputs;
  private final Coordinator coordinator;
  private final Map<String, ExecutorLine> executors = new ConcurrentHashMap<>();
  private final Map<Integer, Flushing> flushes = new ConcurrentHashMap<>();
  private final NodeMetrics metrics = new NodeMetrics().with("shufflesWritten", () -> counters().shufflesWritten())
      .with("predictionErrorPerMille", () -> counters().predictionErrorPerMille())
      .with("fullestHomePerMille", () -> counters().fullestHomePerMille())
      .with("roundRobinPerMille", () -> counters().roundRobinPerMille()).with("homesLost", () -> counters().homesLost())
      .with("attemptsRefused", () -> counters().attemptsRefused())
      .with("incompleteReads", () -> counters().incompleteReads()).with("outputsReplaced", () -> counters().outputsReplaced());
  private volatile boolean ending;

  /** @param strict whether a map that runs again must write the same values too */
  public DriverNode(MapOutputs outputs, double planShare, Recovery recovery, boolean strict, long timeoutMs) {
    this.timeoutMs = timeoutMs;
    this.outputs = outputs;
    coordinator = new Coordinator(outputs, this, planShare, recovery, strict);
  }

  public Coordinator coordinator() {
    return coordinator;
  }

  public NodeMetrics metrics() {
    return metrics;
  }

  private Coordinator.Counters counters() {
    return coordinator.counters();
  }

  public void executorAdded(Executor executor, ExecutorLine line) {
    executors.put(executor.id(), line);
    coordinator.executorAdded(executor);
    coordinator.leaving().forEach(this::handOver); // there may have been no other executor
    LOG.info("Executor {} can be a home of partitions", executor.id());
  }

  public void executorLost(String executor) {
    executors.remove(executor);
    if (!ending) {
      coordinator.executorLost(executor);
      coordinator.leaving().forEach(this::handOver); // partitions may have moved to their replicas there
    }
  }

  /** From now on executors leave because the application ends. */
  public void applicationEnds() {
    ending = true;
    LOG.info("Driver: {}", metrics);
  }

  public void shuffleRemoved(int shuffle) {
    flushes.remove(shuffle);
    coordinator.shuffleRemoved(shuffle);
  }

  /** The answer to a message of an executor, now or later. */
  public CompletableFuture<? extends Message> answer(Message message) {
    if (message instanceof Message.Start m) {
      return done(new Message.Begin(coordinator.start(m.shuffle(), m.mapIndex(), m.attempt(), m.executor())));
    } else if (message instanceof Message.Commit m) {
      Coordinator.CommitResult c = coordinator.commit(m.shuffle(), m.attempt(), m.records(), m.millis(), m.sizes(),
          m.digest());
      Executor at = c.accepted() ? c.location() : new Executor("", "", 0);
      if (c.complete()) {
        flush(m.shuffle()); // the map stage ends now: what still waits may leave before a reader asks for it
      }
      return done(new Message.Committed(c.accepted(), at.id(), at.host(), at.port(), c.sizes(), c.rows()));
    } else if (message instanceof Message.PlanRequest m) {
      PlanUpdate placed = coordinator.placed(m.shuffle());
      return done(placed == null ? new Message.Done(coordinator.has(m.shuffle())) : new Message.Planned(placed));
    } else if (message instanceof Message.Locate m) {
      Location location = coordinator.locate(m.shuffle(), m.start(), m.end(), m.attempt(), m.stage(), m.statusesFrom());
      return done(location == null
          ? new Message.Done(false)
          : new Message.Located(location.lineage().version() == m.lineage() ? location.with(null) : location));
    } else if (message instanceof Message.ReadingEnds m) {
      return done(new Message.Done(coordinator.readingEnds(m.shuffle(), m.attempt())));
    } else if (message instanceof Message.Flush m) {
      return flush(m.shuffle()).thenApply(Message.Done::new);
    } else if (message instanceof Message.Missing m) {
      return done(new Message.Done(coordinator.missing(m.shuffle(), m.partition(), m.winners(),
          m.home().isEmpty() ? null : m.home(), m.reason())));
    } else if (message instanceof Message.Corrupt m) {
      coordinator.corrupt(m.shuffle(), m.partition(), m.map(), m.winners(), m.home(), m.reason());
      return done(new Message.Done(true));
    } else if (message instanceof Message.StoreFailed m) {
      coordinator.homeLost(m.shuffle(), m.executor(), m.reason());
      return done(new Message.Done(true));
    } else if (message instanceof Message.Leaving m) {
      return handOver(m.executor()).thenApply(Message.Done::new);
    } else if (message instanceof Message.Refused m) {
      handOver(m.home());
      return done(new Message.Done(true));
    }
    throw new IllegalArgumentException("the driver does not understand " + message);
  }

  private static CompletableFuture<Message> done(Message message) {
    return CompletableFuture.completedFuture(message);
  }

  /**
   * An executor is being decommissioned: its partitions get new homes, and it sends there what it has. Completes when
   * that has arrived for all shuffles, with false if something has not.
   */
  private CompletableFuture<Boolean> handOver(String executor) {
    List<CompletableFuture<Boolean>> answers = new ArrayList<>();
    coordinator.leaving(executor).forEach((shuffle, epoch) -> {
      List<Long> attempts = coordinator.unflushed(shuffle, executor);
      answers.add(flush(shuffle, executor, attempts).thenApply(ok -> {
        if (ok) {
          coordinator.handedOver(shuffle, executor, epoch);
        }
        return ok;
      }));
    });
    return all(answers);
  }

  /** Has one executor send what it holds of the shuffle, which includes these attempts. */
  private CompletableFuture<Boolean> flush(int shuffle, String executor, List<Long> attempts) {
    ExecutorLine line = executors.get(executor);
    if (line == null) {
      return CompletableFuture.completedFuture(false);
    }
    return line.ask(new Message.Flush(shuffle), timeoutMs).toCompletableFuture().handle((answer, error) -> {
      boolean ok = error == null && ((Message.Done) answer).ok();
      if (ok) {
        coordinator.flushed(shuffle, attempts);
      }
      return ok;
    });
  }

  private static CompletableFuture<Boolean> all(List<CompletableFuture<Boolean>> answers) {
    return CompletableFuture.allOf(answers.toArray(new CompletableFuture<?>[0]))
        .thenApply(ignored -> answers.stream().allMatch(CompletableFuture::join));
  }

  /** Has every executor send what it holds of the shuffle; joins a flush that covers all commits and plans so far. */
  private CompletableFuture<Boolean> flush(int shuffle) {
    long version = coordinator.version(shuffle);
    Flushing running = flushes.get(shuffle);
    if (running != null && running.version == version && !running.done.isDone()) {
      return running.done;
    }
    Map<String, List<Long>> covered = coordinator.flushBegins(shuffle);
    List<CompletableFuture<Boolean>> answers = new ArrayList<>();
    covered.forEach((executor, attempts) -> {
      if (executors.containsKey(executor)) {
        answers.add(flush(shuffle, executor, attempts));
      }
    });
    CompletableFuture<Boolean> done = all(answers);
    flushes.put(shuffle, new Flushing(version, done));
    return done;
  }

  @Override
  public void publish(PlanUpdate update) {
    outputs.keep(update.plan().shuffle(), update.executors());
    executors.values().forEach(line -> line.send(new Message.Planned(update)));
  }

  @Override
  public void log(String line) {
    LOG.info("{}", line);
  }

  @Override
  public void detail(Supplier<String> line) {
    if (LOG.isDebugEnabled()) {
      LOG.debug("{}", line.get());
    }
  }

  @Override
  public void warn(String line) {
    LOG.warn("{}", line);
  }
}
