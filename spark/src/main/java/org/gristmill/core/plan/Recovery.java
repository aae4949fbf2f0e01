package org.gristmill.core.plan;

/** How the partitions of a lost home are recovered. */
public enum Recovery {
  /** Maps run again and emit only what was lost. Costs nothing until then. */
  RECOMPUTE,
  /** Senders keep their segments in a file too and send them again; only maps whose sender is gone run again. */
  RESEND,
  /** Every segment goes to two homes; the second takes over. */
  REPLICATE
}
