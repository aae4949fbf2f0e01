//! The memory of jobs: what the machine does not have is refused, and the kernel holds each job to its amount where it
//! can.

use crate::queue::{BatchJob, State};
use gristmill::Error;
use gristmill_counters::units::bytes as shown;
use gristmill_os::machine::memory_bytes;
use gristmill_os::program::{Freezer, MemoryLimits};

use crate::report::record::short;
use gristmill_report::messages::tell;

/// Refuses amounts that make no sense here. `all` is the memory for all jobs at the same time.
pub fn check(jobs: &[BatchJob], all: Option<usize>) -> Result<(), Error> {
    let job = jobs.iter().enumerate().max_by_key(|(_, job)| job.memory_bytes);
    let asked = job.map_or(0, |(_, job)| job.memory_bytes);
    if asked == 0 && all.is_none() {
        return Ok(());
    }
    let there =
        memory_bytes().map_err(|source| Error::System { what: "asking for the memory of the machine", source })?;
    let too_much = |what: String, bytes: u64| {
        let (bytes, there) = (shown(bytes), shown(there));
        Err(Error::Setting(format!("{what} is {bytes}, and there are only {there} here: ask for less")))
    };
    match (all, job) {
        (Some(0), _) => Err(Error::Setting("--memory is 0, with which no job may run: leave it out".to_owned())),
        (Some(all), _) if all as u64 > there => too_much("--memory".to_owned(), all as u64),
        (_, Some((at, job))) if asked > there => {
            too_much(format!("the memory of job {} ({})", at + 1, job.name), asked)
        }
        _ => Ok(()),
    }
}

/// Says which jobs that wait ask for more memory than all may have at the same time. `asked_for` says that this is
/// --memory.
pub fn alone(jobs: &[BatchJob], states: &[State], all_bytes: u64, asked_for: bool) -> Option<String> {
    let too_large =
        |(_, (job, state)): &(usize, (&BatchJob, &State))| **state == State::Waiting && job.memory_bytes > all_bytes;
    let mut large = jobs.iter().zip(states).enumerate().filter(too_large);
    let (at, (job, _)) = large.next()?;
    let name = format!("job {} ({})", at + 1, short(&job.name));
    let (bytes, all) = (shown(job.memory_bytes), shown(all_bytes));
    let all = if asked_for { format!("--memory {all}") } else { format!("the {all} that are available") };
    Some(match large.count() {
        0 => format!("{name} asks for {bytes}, more than {all}, so it runs alone"),
        more => format!("{name} and {more} more ask for more than {all}, so each of them runs alone"),
    })
}

/// Returns how the memory of each job is limited, or says once that it is not. `None` too if no job names an amount.
pub fn limits(jobs: &[BatchJob], freezer: &Freezer, quiet: bool) -> Option<MemoryLimits> {
    if jobs.iter().all(|job| job.memory_bytes == 0) {
        return None;
    }
    let limits = MemoryLimits::here("gristmill", freezer);
    if let (Err(why), false) = (&limits, quiet) {
        tell(format_args!("the memory that jobs name decides when they begin, but no limit holds them to it: {why}"));
    }
    limits.ok()
}
