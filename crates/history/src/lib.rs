//! The earlier runs of programs, in one SQLite file.
//!
//! ```text
//!  schema     the tables, and the version of their form
//!  place      its folder and the files beside it, which must be this user's own
//!  forgotten  what other processes have forgotten, so that it is not written back
//!  file       opens the file, or says why the work goes on without it
//!  reading    opens it to look at it, also where nothing may be written
//!  limits     removes what is too much or too old
//!  runs       each run of a program: its times, its memory, how it ended
//!  profiles   what the scheduler has learned: phases and work by program and input (`gristmill_schedule::Store`)
//!  ceilings   what the machine's memory can do
//!  demands    explains what is known of a program's demand; keeps what was decided
//!  measured   times with several numbers of workers, for the plan of the next run
//!  account    lists and explains programs, exports and forgets them
//!  gains      what choosing programs gained, run by run
//! ```
//!
//! Several processes may use a file at the same time (SQLite's write-ahead log). The history is a convenience: no
//! caller fails because it cannot be read or written.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod schema;
mod place;
mod forgotten;
mod file;
mod reading;
mod limits;
mod runs;
mod profiles;
mod ceilings;
mod measured;
mod demands;
mod account;
mod gains;

pub use account::Account;
pub use ceilings::{Ceiling, UNDISTURBED_US};
pub use demands::{BothTimes, Demand, READINGS_MIN, TIER_B};
pub use file::{History, Problem, in_home};
pub use gains::{CHOSEN, Repeat, Repeated};
pub use limits::{BYTES_MIN, Limits};
pub use measured::{Asked, Measured, Question};
pub use runs::PastRun;
