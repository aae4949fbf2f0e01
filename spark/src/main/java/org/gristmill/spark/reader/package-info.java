/**
 * The reduce side of a task: segments to records.
 *
 * <p>In: the map statuses of Spark; partitions at their homes.<br>
 * Out: records, sorted if the shuffle asks for it; or a fetch failure.<br>
 * Called by: the seam, for Spark's shuffle reader.<br>
 * Never: returns a record of an attempt that has not won, or ends well if what it read was replaced.
 */
package org.gristmill.spark.reader;
