package org.gristmill.spark.reader;

import java.io.Closeable;
import java.io.IOException;
import scala.Product2;
import scala.collection.Iterator;

/** Files for the records that a sorter cannot keep in memory. */
public interface SpillFiles {
  /** Records in a file, in the order in which they were written. */
  interface Spilled<K, C> extends Closeable {
    Iterator<Product2<K, C>> records();

    long bytes();

    /** Deletes the file. */
    @Override
    void close();
  }

  <K, C> Spilled<K, C> write(java.util.Iterator<Product2<K, C>> records) throws IOException;
}
