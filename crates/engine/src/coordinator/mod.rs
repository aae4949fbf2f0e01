//! Starts the workers, watches over the job, and receives the result.
//!
//! In: a [`Request`]. Out: the result pair by pair, or one error. The room `job` calls it. It neither maps nor reduces.
//! [`deaths`] handles dead workers, and [`rounds`] decides when a round ends.

mod request;
mod prepare;
mod results;
mod clock;
mod worker_handle;
mod stages;
mod state;
mod failures;
mod set_aside;
mod start;
mod deaths;
mod overdue;
mod standstill;
mod rounds;
mod steps;
mod watch;
mod conduct_stages;
mod conduct;
mod timeline;
mod attempts;
mod supervise;

pub(crate) use request::{Request, Terms};
pub(crate) use supervise::{begun, committed, iterate, run, run_into, write};
