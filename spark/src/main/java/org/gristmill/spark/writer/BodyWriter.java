package org.gristmill.spark.writer;

import java.io.IOException;

/** Appends the body of a segment to {@code to}, compressed and encrypted as Spark's settings say. */
public interface BodyWriter {
  void write(GrowingBuffer body, GrowingBuffer to) throws IOException;
}
