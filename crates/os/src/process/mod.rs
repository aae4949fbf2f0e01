//! Worker processes: fork, watch, and cause of death.

mod death;
mod child;
mod activity;

pub use activity::Activity;
pub use child::{Child, ForkError, PANICKED, fork_worker, threads_in_this_process};
pub use death::Death;
