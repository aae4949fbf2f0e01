//! The guard and the scheduler: programs begin, and end.
//!
//! ```text
//!  slots      a number of programs, or a share of the processors
//!  memory     the amounts of memory that jobs name, and their limits
//!  admission  limits for starting: the load and the free memory
//!  guard      the watchdog: a second process that cleans up if the first one dies
//!  before     the jobs that had ended before this queue
//!  jobs       the jobs that have arrived, and which of them begins next
//!  kept       the lines of the journal, and when they must be on the disk
//!  programs   the programs that run: they begin, they are looked after, and they leave
//!  runner     begins programs and sees them end
//! ```

pub mod slots;
pub mod memory;
pub mod admission;
pub mod guard;
pub mod before;
pub mod jobs;
pub mod kept;
pub mod programs;
pub mod runner;
