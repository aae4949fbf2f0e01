package org.gristmill.core.driver;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import org.gristmill.core.plan.Placement;

/** How fast executors have run the maps of one shuffle, for placement to give slow ones less. */
final class MapSpeeds {
  private static final int MAPS_MIN = 4; // of an executor, to judge it by

  /** The maps that an executor has run, and the records per millisecond of its slowest and its fastest map. */
  private record Speed(int maps, long records, long millis, double slowest, double fastest) {
    static Speed of(long records, long millis) {
      double speed = (double) records / millis;
      return new Speed(1, records, millis, speed, speed);
    }

    double mean() {
      return (double) records / millis;
    }

    Speed plus(Speed more) {
      return new Speed(maps + more.maps, records + more.records, millis + more.millis, Math.min(slowest, more.slowest),
          Math.max(fastest, more.fastest));
    }
  }

  private final Map<String, Speed> executors = new HashMap<>();

  void add(String executor, long records, long millis) {
    executors.merge(executor, Speed.of(records, Math.max(1, millis)), Speed::plus);
  }

  /**
   * Speed of each node; 1 unless it is surely slow: of at least four maps its fastest was slower by a third than the
   * slowest of some other node. Nodes that are alike differ by as much in single maps, while they warm up or their
   * machine is busy.
   */
  double[] of(String[] nodes) {
    double[] speeds = Placement.alike(nodes.length);
    Speed sure = executors.values().stream().filter(s -> s.maps >= MAPS_MIN).max(Comparator.comparingDouble(Speed::slowest)).orElse(null);
    for (int n = 0; n < nodes.length; n++) {
      Speed done = executors.get(nodes[n]);
      if (done != null && done.maps >= MAPS_MIN && done.fastest < sure.slowest * 2 / 3) {
        speeds[n] = Math.max(0.25, done.mean() / sure.mean());
      }
    }
    return speeds;
  }
}
