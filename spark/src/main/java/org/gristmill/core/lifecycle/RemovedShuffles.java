package org.gristmill.core.lifecycle;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Shuffles that were removed lately, and which attempts that concerns. A shuffle may be written again; task attempts
 * are numbered upwards through the whole application, so segments of attempts known at the removal are dropped, and
 * those of later attempts are taken.
 *
 * <p>Thread safe.
 */
public final class RemovedShuffles {
  private static final int REMEMBERED = 1000; // an attempt that still writes after this many later removals leaves a file

  private final Map<Integer, Long> until = new LinkedHashMap<>() {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, Long> eldest) {
      return size() > REMEMBERED;
    }
  };
  private long newest = -1;

  /** An attempt, of any shuffle, is at work. */
  public synchronized void seen(long attempt) {
    newest = Math.max(newest, attempt);
  }

  public synchronized void remove(int shuffle) {
    until.put(shuffle, newest);
  }

  /** True if the shuffle was removed after this attempt had begun. */
  public synchronized boolean concerns(int shuffle, long attempt) {
    return attempt <= until.getOrDefault(shuffle, -1L);
  }
}
