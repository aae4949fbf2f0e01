//! Processes: fork, watch, and cause of death; the tree of a process, and its end.

mod death;
mod child;
mod activity;
mod tree;

pub use activity::Activity;
pub use child::{Child, ForkError, OomKills, PANICKED, fork_worker, fork_worker_of, threads_in_this_process};
pub use death::Death;
pub use tree::{Stat, descendants, end_descendants, numbers};
