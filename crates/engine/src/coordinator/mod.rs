//! The coordinator starts the workers, watches over the job, and takes in the result.
//!
//! In: a [`Request`]. Out: the result, pair by pair, or one error. The room `job` calls it. It maps nothing and reduces nothing; where
//! a death is made good is [`deaths`], and where rounds move on is [`rounds`].

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
mod rounds;
mod steps;
mod watch;
mod conduct_stages;
mod conduct;
mod supervise;

pub(crate) use request::Request;
pub(crate) use supervise::{iterate, run, write};
