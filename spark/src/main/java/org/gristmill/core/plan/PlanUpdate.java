package org.gristmill.core.plan;

import java.util.BitSet;
import java.util.List;

/**
 * A plan, the executors that it names, and the partitions that must be sent to their homes again.
 *
 * @param leaving the executor that hands over these partitions from its store before it ends; empty if their senders
 *     send them again from their own copies
 */
public record PlanUpdate(Plan plan, List<Executor> executors, BitSet refill, String leaving) {}
