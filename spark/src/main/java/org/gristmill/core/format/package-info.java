/**
 * The bytes on the wire and on disk: segments, indexes of partitions, messages.
 *
 * <p>In: records as serialised bytes; the fields of a message.<br>
 * Out: byte arrays; parsed headers, or an exception for bytes that cannot be right.<br>
 * Called by: senders, homes, readers and both ends of the RPC.<br>
 * Never: allocates what a header declares before the bytes have arrived, or trusts a number from the network.
 */
package org.gristmill.core.format;
