package org.gristmill.spark.reader;

import java.io.IOException;
import scala.Product2;
import scala.collection.Iterator;

/** Files for the records that a sorter cannot keep in memory. */
public interface SpillFiles {
  /** Records in a file, in the order in which they were written, and how to delete it. */
  record Spilled<K, C>(Iterator<Product2<K, C>> records, long bytes, Runnable delete) {}

  <K, C> Spilled<K, C> write(java.util.Iterator<Product2<K, C>> records) throws IOException;
}
