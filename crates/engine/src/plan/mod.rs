//! Every choice about a job, made once, before its first worker starts.
//!
//! In: settings, machine, input, a sample of it and times of earlier runs. Out: a [`Plan`](job_plan::Plan), and the text that `--explain`
//! prints of it. The coordinator makes the plan and workers obey it. Everything here is a function of its arguments: it
//! reads no files and makes no system calls.

pub(crate) mod settings;
pub(crate) mod options;
pub(crate) mod mode;
pub(crate) mod sample;
pub(crate) mod budget;
pub(crate) mod placement;
pub(crate) mod history;
pub(crate) mod job_plan;
pub(crate) mod ignored;
pub(crate) mod explain;
