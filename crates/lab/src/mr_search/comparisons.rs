//! The comparison of the engine's own choice: memory of pages.

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
