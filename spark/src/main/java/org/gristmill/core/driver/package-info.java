/**
 * The driver's knowledge of each shuffle: attempts, sizes, plan, taint table.
 *
 * <p>In: starts and commits of map attempts, lost executors, readers that found something missing.<br>
 * Out: what an attempt must emit, plans, contents of map statuses, map outputs to unregister.<br>
 * Called by: the driver's node, one call at a time.<br>
 * Never: moves data, blocks, or lets an attempt win whose output is not whole.
 */
package org.gristmill.core.driver;
