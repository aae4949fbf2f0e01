/**
 * The home of partitions: memory first, then one file per shuffle and disk.
 *
 * <p>In: segments of parcels.<br>
 * Out: the index of a partition; its bytes, from memory or from the file.<br>
 * Called by: the network's threads (receive), reduce tasks (index, read).<br>
 * Never: judges which attempt has won, or writes a small piece from a network thread.
 */
package org.gristmill.core.home;
