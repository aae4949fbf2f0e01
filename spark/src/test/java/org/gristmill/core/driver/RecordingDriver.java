package org.gristmill.core.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;

/** The surroundings of a coordinator in the driver, for tests: notes all calls and does nothing. */
public class RecordingDriver implements MapOutputs, Announcer {
  final List<String> done = new ArrayList<>();
  final List<Plan> plans = new ArrayList<>();
  final List<String> lines = new ArrayList<>();
  final List<String> details = new ArrayList<>();
  final List<PlanUpdate> published = new ArrayList<>();

  @Override
  public boolean unregister(int shuffle, Set<Long> attempts) {
    done.add("unregister " + new TreeSet<>(attempts));
    return false;
  }

  @Override
  public boolean unregisterAnywhere(long attempt) {
    return false;
  }

  @Override
  public long trackerEpoch() {
    return 0;
  }

  @Override
  public void move(int shuffle, String from, List<Executor> to) {
    done.add("move from " + from + " to " + to.stream().map(Executor::id).toList());
  }

  @Override
  public void keep(int shuffle, List<Executor> homes) {}

  @Override
  public void fail(int stage, String reason) {}

  @Override
  public void publish(PlanUpdate update) {
    published.add(update);
    plans.add(update.plan());
  }

  @Override
  public void log(String line) {
    lines.add(line);
  }

  @Override
  public void detail(Supplier<String> line) {
    details.add(line.get());
  }

  @Override
  public void warn(String line) {
    done.add("warn " + line);
  }
}
