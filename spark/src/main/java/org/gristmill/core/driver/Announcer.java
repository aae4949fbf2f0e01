package org.gristmill.core.driver;

import java.util.function.Supplier;
import org.gristmill.core.plan.PlanUpdate;

/** Tells the executors of plans, and the log of decisions. Calls must not block. */
public interface Announcer {
  void publish(PlanUpdate update);

  void log(String line);

  void warn(String line);

  /** Logs a line for somebody who looks for a fault. */
  void detail(Supplier<String> line);
}
