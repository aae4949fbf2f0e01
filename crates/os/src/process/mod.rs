//! Worker processes: fork, watch, and cause of death.

mod death;
mod child;
mod activity;

pub use activity::Activity;
pub use child::{Child, ForkError, OomKills, PANICKED, fork_worker, fork_worker_of, threads_in_this_process};
pub use death::Death;
