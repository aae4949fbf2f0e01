package org.gristmill.spark.writer;

/** Access to SQL's rows. No class of Spark SQL is named, because the plugin loads where there is none. */
final class SqlRows {
  private SqlRows() {}

  /**
   * The bytes of a row's fixed part: a bit for each column that may be null, in words of 64, and a word for each
   * column.
   */
  static int columnBytes(Object row) {
    try {
      int columns = (Integer) row.getClass().getMethod("numFields").invoke(row);
      return (columns + Long.SIZE - 1) / Long.SIZE * Long.BYTES + columns * Long.BYTES;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("a row of the class " + row.getClass().getName() + " does not say how many columns it has", e);
    }
  }
}
