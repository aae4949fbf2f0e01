/**
 * The map side of a task: records to segments.
 *
 * <p>In: the records of one map attempt; what it must emit.<br>
 * Out: sealed segments for the node; sizes and the digest of all records.<br>
 * Called by: the seam, for Spark's shuffle writer.<br>
 * Never: sorts, writes a file, or knows where a partition lives.
 */
package org.gristmill.spark.writer;
