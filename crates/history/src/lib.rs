//! What is known of programs from their earlier runs, in one SQLite file.
//!
//! ```text
//!  schema     the tables, and the version of their form
//!  place      its folder and the files beside it, which must be this user's own
//!  file       opens the file, or says why the work goes on without it
//!  runs       each run of a program: its times, its memory, how it ended
//!  profiles   what the scheduler has learned: phases and work by program and input (`gristmill_schedule::Store`)
//!  ceilings   what the machine's memory can do
//!  demands    explains what is known of a program's demand; keeps what was decided
//!  measured   times with several numbers of workers, for the plan of the next run
//!  account    lists and explains programs, exports and forgets them
//!  gains      what choosing programs gained, run by run
//! ```
//!
//! Several processes may use a file at the same time (SQLite's write-ahead log). The history is a convenience: no caller fails because it
//! cannot be read or written.

#![forbid(unsafe_code)]

mod schema;
mod place;
mod file;
mod runs;
mod profiles;
mod ceilings;
mod demands;
mod measured;
mod account;
mod gains;

pub use account::Account;
pub use ceilings::{Ceiling, UNDISTURBED_US};
pub use demands::{Demand, TIER_B};
pub use file::{History, Problem, in_home};
pub use gains::{Repeat, Repeated};
pub use measured::{Measured, Question};
pub use runs::Run;
