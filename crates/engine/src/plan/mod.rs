//! Every choice about a job, made once, before its first worker starts.
//!
//! In: settings, machine, input and a sample of it. Out: a [`Plan`](job_plan::Plan), and what `--explain` prints of it. The coordinator
//! makes it, and workers obey it. Everything here is a function of its arguments: it reads no file and asks no kernel.

pub(crate) mod settings;
pub(crate) mod mode;
pub(crate) mod sample;
pub(crate) mod budget;
pub(crate) mod job_plan;
pub(crate) mod explain;
