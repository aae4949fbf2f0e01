/**
 * The plugin's part in each process: one node in the driver, one in each executor.
 *
 * <p>In: messages; segments of map tasks; parcels.<br>
 * Out: answers; parcels; metrics; the reason why a shuffle is left to Spark.<br>
 * Called by: the seam, the writer and the reader.<br>
 * Never: deserialises a record, or uses what is private to Spark: the interfaces here say what it needs.
 */
package org.gristmill.spark.node;
