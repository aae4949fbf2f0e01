//! The protocol by which workers exchange pages through shared memory.
//!
//! It has four parts, all of them safe code over borrowed atomics:
//!
//! - [`Mailbox`], into which workers put the numbers of pages for its owner;
//! - [`Doorbell`], on which an idle worker sleeps until it is rung;
//! - [`CommitWord`], the last epoch of a map worker that counts;
//! - [`Latch`], which lets one worker at a time change a piece of memory, and which outlives a dead holder.
//!
//! The atomics may lie in shared memory, on the heap, or inside loom, which replaces them by its own
//! and then tries every interleaving. `README.md` in this crate is the protocol: states, steps,
//! promises, and the state that a dead peer leaves.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod sync;
mod commit;
mod doorbell;
mod latch;
mod mailbox;

pub use commit::CommitWord;
pub use doorbell::{Doorbell, Futex};
pub use latch::Latch;
pub use mailbox::{Mailbox, Overwritten};

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
