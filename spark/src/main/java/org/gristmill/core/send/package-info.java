/**
 * The sending side: the page pool and the outbox.
 *
 * <p>In: sealed segments of all map tasks of an executor; plans.<br>
 * Out: parcels for one executor at a time; the answer to a flush.<br>
 * Called by: map tasks (add), the executor's node (plans, flushes).<br>
 * Never: looks into a segment's body, decides about homes, or waits for a page while it sends.
 */
package org.gristmill.core.send;
