/**
 * Where partitions live, what attempts must emit, and the settings.
 *
 * <p>In: settings, executors, sizes of the first map outputs.<br>
 * Out: values that travel in messages ({@link Plan}, {@link Emission}, {@link Lineage}); predicted sizes;
 * placements.<br>
 * Called by: the driver, which decides; senders and readers, which obey.<br>
 * Never: does input or output, holds state of a shuffle, or uses Spark.
 */
package org.gristmill.core.plan;
