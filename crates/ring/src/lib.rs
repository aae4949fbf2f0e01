//! How workers that share nothing but memory hand pages to each other.
//!
//! Four small parts, all of them safe code over borrowed atomics:
//!
//! - [`Producer`] and [`Consumer`], the two ends of a ring of page numbers;
//! - [`Doorbell`], on which an idle worker sleeps until another has work for it;
//! - [`CommitWord`], which says how far the pages of a map worker count;
//! - [`Latch`], which lets one worker at a time change a piece of memory, and bars nobody for the dead.
//!
//! The atomics may lie in shared memory, on the heap, or inside loom, which replaces them by its own
//! and then tries every interleaving. `README.md` beside this crate is the protocol: states, steps,
//! promises, and what a dead peer leaves behind.

#![forbid(unsafe_code)]

mod commit;
mod doorbell;
mod latch;
mod ring;
pub mod sync;

pub use commit::CommitWord;
pub use doorbell::{Doorbell, Futex};
pub use latch::Latch;
pub use ring::{Cells, Consumer, Full, Producer};

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
