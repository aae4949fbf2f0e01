package org.gristmill.core.plan;

import java.util.List;

/** The homes and the lineage that a reader of partitions [start, end) needs. */
public record Location(int epoch, List<Executor> homes, Lineage lineage) {}
