//! Chooses programs that run together without starving each other of memory bandwidth.
//!
//! This is the policy of bandwidth-aware scheduling (Xu et al.; docs/bibliography.md), which comments here call the paper, as a library that makes no system call. In the order of the data flow:
//!
//! ```text
//!  machine       the interface: decisions go out, reports of quanta come in
//!  knowledge     the interface to sources of knowledge about programs
//!   learned        the paper's source: earlier executions and the current one
//!    blocks          samples of instruction addresses become vectors
//!    phases          similar vectors are one phase
//!    contention      the three states in which a program runs as if alone
//!    estimate        means of valid samples
//!    pressure        demands without counters, from readings of the memory
//!    transitions     predicts the next phase
//!    learning        the parameters of learning
//!    execution       the phases of a current execution, and the work done in them
//!    store           the data kept for the next execution
//!    probed          demands without counters, by program and phase, and whether they still show
//!  scheduler     decides
//!   settings       the extensions, each with a switch
//!   admission      programs begin when their memory fits
//!   gate           nothing is changed where there is no contention
//!   ideal          the bandwidth that a group demands: the target
//!   select         programs that come near to the target together
//!   pairings       pairs that proved to be wrong
//!   trial          whose turn it is: the scheduler's order or the system's
//!  simulation    a machine in memory
//! ```
//!
//! README.md explains how they work together, with the formulas.

#![forbid(unsafe_code)]

mod machine;
mod ideal;
mod blocks;
mod contention;
mod estimate;
mod pressure;
mod transitions;
mod phases;
mod store;
mod probed;
mod knowledge;
mod learning;
mod execution;
mod learned;
mod select;
mod admission;
mod gate;
mod pairings;
mod trial;
mod settings;
mod scheduler;
pub mod simulation;

pub use blocks::{BlockVector, Buckets};
pub use contention::{Little, Thresholds};
pub use estimate::Estimate;
pub use execution::is_chosen;
pub use gate::GateRule;
pub use ideal::{Work, ideal_average_bandwidth, ideal_time_us, total_requests};
pub use knowledge::{Forecast, Knowledge, Order, Progress, Tally};
pub use learned::Learned;
pub use learning::Learning;
pub use machine::{Arrival, Counts, Decision, Ended, Key, Limits, Machine, ProgramId, Quantum, Ran, Reading, Run};
pub use pairings::PairRule;
pub use phases::{Phase, Phases, Similarity};
pub use pressure::{Pressure, Pressures, Source};
pub use scheduler::{Cost, Reason, Scheduler, drive, drive_with};
pub use select::{Candidate, select};
pub use settings::Settings;
pub use store::{Gain, Input, Program, Recent, Store, Times, alone_us};
pub use transitions::{Followed, Transitions};
pub use trial::TrialRule;
