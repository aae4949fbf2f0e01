//! Rules that go beyond the paper, each with a switch in [`settings`].
//!
//! ```text
//!  admission  programs begin when their memory fits
//!  gate       nothing is changed where there is no contention
//!  pairings   pairs that proved to be wrong
//!  trial      whose turn it is: the scheduler's order or the system's
//!  settings   the switches
//! ```
//!
//! Two more change what is known: `Learning::earlier_transitions`, and `SAVED_MIN` of [`crate::know::store`].

pub mod admission;
pub mod gate;
pub mod pairings;
pub mod trial;
pub mod settings;
