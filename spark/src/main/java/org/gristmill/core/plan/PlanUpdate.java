package org.gristmill.core.plan;

import java.util.BitSet;
import java.util.List;

/** A plan, the executors that it names, and the partitions that senders must send again from their own copies. */
public record PlanUpdate(Plan plan, List<Executor> executors, BitSet refill) {}
