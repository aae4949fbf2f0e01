//! Demands on a machine that counts nothing, from readings of its memory. All of this goes beyond the paper.
//! `choose/probing.rs` of the crate gristmill-batch takes the readings.
//!
//! ```text
//!  pressure  the slow-down that each source causes, from readings beside several of them
//!  probed    the demands of programs and phases, and what a choice could avoid
//!  today     whether demands of earlier sessions still show
//! ```

pub mod pressure;
pub mod probed;
pub mod today;
