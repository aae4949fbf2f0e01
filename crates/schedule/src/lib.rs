//! Chooses programs that run together without starving each other of memory bandwidth.
//!
//! This is the policy of bandwidth-aware scheduling (Xu et al.; docs/bibliography.md), which comments here call the
//! paper, as a library that makes no system call. In the order of the data flow:
//!
//! ```text
//!  machine       the interface: decisions go out, reports of quanta come in
//!  uncounted     demands on a machine that counts nothing (beyond the paper)
//!  know          what is known of programs
//!  decide        which programs run; `decide/beyond` goes beyond the paper
//! ```
//!
//! README.md explains how they work together, with the formulas.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod machine;
mod uncounted;
mod know;
mod decide;

pub use decide::beyond::gate::GateRule;
pub use decide::beyond::settings::Settings;
pub use decide::beyond::trial::TrialRule;
pub use decide::ideal::{ideal_average_bandwidth, ideal_time_us, total_requests};
pub use decide::scheduler::{Cost, Reason, Scheduler, drive};
pub use decide::select::{Candidate, select};
pub use know::blocks::BlockVector;
pub use know::contention::{Little, states};
pub use know::estimate::Estimate;
pub use know::execution::is_chosen;
pub use know::knowledge::{Forecast, Knowledge, Order, Progress, Tally};
pub use know::learned::Learned;
pub use know::learning::{COVERAGE_KEPT, COVERAGE_MIN, Learning};
pub use know::phases::{Phase, Phases, Similarity};
pub use know::store::{Gain, KnownInput, KnownProgram, Recent, Store, Times, alone_us};
pub use know::transitions::{Followed, Transitions};
pub use know::work::ProgramWork;
pub use machine::{Arrival, Choice, Counts, Decision, Ended, Key, Limits, Machine, ProgramId, Quantum, Ran, Reading};
pub use uncounted::pressure::{Pressing, Pressure, Pressures};
