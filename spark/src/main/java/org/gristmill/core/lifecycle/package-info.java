/**
 * The end of threads and of shuffles, as others notice it.
 *
 * <p>In: a thread's body; the removal of a shuffle.<br>
 * Out: an exception for each thread that waits for a dead one; whether an attempt began before its shuffle was
 * removed.<br>
 * Called by: the outbox, the stores and the executor's node.<br>
 * Never: retries, or ends the process.
 */
package org.gristmill.core.lifecycle;
