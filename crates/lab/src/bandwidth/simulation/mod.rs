//! A machine in memory whose clock jumps: the second implementor of [`gristmill_schedule::Machine`].
//!
//! ```text
//!  trace     the behaviour of a program alone: segments of code, each with a demand
//!  bus       the slowdown of programs by each other
//!  linux     the system's order: a round robin on each processor, with balancing
//!  machine   runs them quantum by quantum, and reports what a real machine would count
//! ```
//!
//! The same seed gives the same history.

mod bus;
mod trace;
mod linux;
mod machine;

pub use bus::Bus;
pub use machine::{Ground, Simulated, Submission};
pub use trace::{Cursor, Shape, Trace};
