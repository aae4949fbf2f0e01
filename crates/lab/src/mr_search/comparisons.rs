//! The comparisons of the engine's own choices: memory of pages, and nodes of workers.

use crate::compare::comparison::{Comparison, Variant};

pub fn pages(processors: usize) -> Comparison {
    let with = |name: &&str| Variant::on_all(processors, name, &format!("--pages {name}"));
    Comparison::new(
        "Memory of pages",
        "A page's memory is given back to the kernel after each use and faulted in again (fresh), written again \
         (reuse), or faulted in before the first task and then written again (prealloc). Look at the page faults, too.",
        ["fresh", "reuse", "prealloc"].iter().map(with).collect(),
    )
}

pub fn placement(processors: usize) -> Comparison {
    let with = |name: &&str| Variant::on_all(processors, name, &format!("--placement {name}"));
    Comparison::new(
        "Nodes of workers",
        "On a machine with several NUMA nodes, a worker stays on one of them, where its memory is (pinned), or runs where \
         the kernel puts it (off); the plan chooses (auto). On one node there is no difference.",
        ["auto", "pinned", "off"].iter().map(with).collect(),
    )
}
