/**
 * The reading side: which segments of a partition a reader takes, and how they come.
 *
 * <p>In: the index of a partition; the winning attempt of each map.<br>
 * Out: the bodies of all segments of the winners, each once, with their checksums verified.<br>
 * Called by: reduce tasks.<br>
 * Never: takes a segment of an attempt that has not won, or waits without a limit.
 */
package org.gristmill.core.read;
