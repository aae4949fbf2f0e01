package org.gristmill.core.read;

/** Counts what a reader fetches. */
public interface FetchMetrics {
  void fetchedHere(long bytes);

  void fetchedElsewhere(long bytes);

  void waited(long millis);
}
