//! Every choice about a job, made once, before its first worker starts.
//!
//! In: settings, machine, input, a sample of it and times of earlier runs ([`Known`](known::Known)). Out: a
//! [`Plan`](job_plan::Plan), and the text that `--explain` prints of it. Each choice is made by one function, which
//! returns it with its [`Reason`](reason::Reason). The coordinator makes the plan and workers obey it. Everything here
//! is a function of its arguments: it reads no files and makes no system calls.

pub(crate) mod settings;
pub(crate) mod options;
pub(crate) mod mode;
pub(crate) mod sample;
pub(crate) mod history;
pub(crate) mod known;
pub(crate) mod reason;
pub(crate) mod workers;
pub(crate) mod placement;
pub(crate) mod splits;
pub(crate) mod combining;
pub(crate) mod partitions;
pub(crate) mod arena;
pub(crate) mod budget;
pub(crate) mod shelf_shape;
pub(crate) mod job_plan;
pub(crate) mod balance;
pub(crate) mod explain;

#[cfg(test)]
mod tests;
