//! The comparisons of MR-Search.

use super::allocator::ALLOCATORS;
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

pub fn allocator(processors: usize) -> Comparison {
    let with = |name: &str| Variant::on_all(processors, name, "");
    let (mut variants, mut absent) = (vec![with("C library")], Vec::new());
    for allocator in &ALLOCATORS {
        match allocator.find() {
            preload @ Some(_) => variants.push(Variant { preload, ..with(allocator.name) }),
            None => absent.push(allocator.advice()),
        }
    }
    let question = "The same job with other implementations of malloc, loaded in place of that of the C library. Pages do not \
                    come from malloc; tables, lists and results do. All numbers are below: allocations, page faults, and time in the kernel.";
    Comparison { absent, ..Comparison::new("Allocators", question, variants) }
}

pub fn hand_over() -> Comparison {
    let variants = ["pages", "pipe", "socket"].map(|way| Variant::new(way, &format!("--way {way}"))).into();
    let question = "One process reads a text, another counts its lines; only the way between them differs. Pages of 32 KiB change \
                    hands in place, as the engine's do, or are copied through a pipe, or through a socket.";
    let compared = Comparison::new("Shared pages or messages", question, variants);
    Comparison { asks: |workload| workload.name == "word-count", instead: Some("hand-over"), ..compared }
}
