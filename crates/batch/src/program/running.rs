//! One running program: its group of processes, its time, and the steps by which it is ended.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use gristmill_os::machine::oom_kills;
use gristmill_os::program::{Clock, Freezer, Group, MemoryLimits, Start, now_ended, start};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::capture::Capture;
use super::heartbeat::{self, Heartbeat};
use super::identity::Identity;
use super::observed::{Observed, Observers};
use super::ready::STREAMS;
use crate::journal_file::now_ms;
use crate::queue::{BatchJob, Outcome};

/// How often a program is started again whose group another queue took for one that was left over, and removed.
const GROUP_TRIES: usize = 10;
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

const KILL: i32 = Signal::KILL.as_raw();
/// A shell exits with the number of the signal that ended its last command, plus this.
const SHELL_SIGNALS: i32 = 128;

/// The time between two looks whether the kernel has killed a part of a program for lack of memory. In cgroups of
/// version 1 it leaves the other processes alone, and these may wait for the dead one without end.
const LOOK: Duration = Duration::from_millis(500);

/// The kernel counts in hundredths of a second here, whatever its own clock.
const TICK_US: u64 = 10_000;

/// Returns the ticks of a process and of the children that it has waited for: fields 14 to 17 of `/proc/PID/stat`.
fn ticks(stat: &str) -> u64 {
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Returns the name of the group of an attempt.
pub fn group_name(job: usize, attempt: u32) -> String {
    format!("{}-{attempt}", job + 1)
}

/// Returns the line of a program that begins, without its end: the program adds its process number. It has all that
/// the guard must know of a job, since jobs arrive after the guard has begun.
fn start_note(job: usize, attempt: u32, is_last: bool, key: &str) -> String {
    format!("start {job} {attempt} {} {key} ", u8::from(is_last))
}

/// Returns how a program ended.
pub fn outcome_of(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code),
        (None, signal) => Outcome::Killed(signal.unwrap_or(0)),
    }
}

/// The reason why a program is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    TimedOut,
    /// By the user's request, with time to end.
    Asked,
    /// At once, by the user's request or because the queue cannot go on.
    Killed,
}

/// An attempt to run a job.
pub struct Attempt<'j> {
    /// The place of the job in the list.
    pub number: usize,
    /// The job, as it is in its slot.
    pub job: &'j BatchJob,
    /// Its key in the journal.
    pub key: &'j str,
    pub attempt: u32,
    pub slot: usize,
}

/// The means with which programs begin.
pub struct Means<'a> {
    pub freezer: &'a Freezer,
    /// Limits the memory of jobs that name an amount.
    pub limits: Option<&'a MemoryLimits>,
    /// The observations of each program.
    pub observed: Observed,
    /// Where the guard hears of them.
    pub guard: UnixStream,
}

/// A program that has just begun.
struct Begun {
    group: Group,
    started: Start,
    observers: Observers,
}

impl Means<'_> {
    fn limits_of(&self, job: &BatchJob) -> Option<&MemoryLimits> {
        self.limits.filter(|_| job.memory_bytes > 0)
    }

    /// Begins an attempt in a group of its own.
    fn begin(
        &self,
        attempt: &Attempt<'_>,
        outputs: &[PipeWriter; STREAMS],
        heartbeat: Option<&Heartbeat>,
    ) -> io::Result<Begun> {
        let Attempt { number, job, key, attempt, .. } = *attempt;
        let command = command(job, (number, attempt), outputs, heartbeat)?;
        let (mut group, procs) = self.freezer.group(&group_name(number, attempt))?;
        let limit = self.limits_of(job).map_or(Ok(None), |limits| limits.limit(&mut group, job.memory_bytes));
        let groups: Vec<File> = procs.into_iter().chain(limit.inspect_err(|_| _ = group.remove())?).collect();
        let note = start_note(number, attempt, attempt > job.retries.unwrap_or(0), key);
        let mut observers = Observers::default();
        let mut attach = |pid: Pid| observers = self.observed.attach(pid);
        let attach: Option<&mut dyn FnMut(Pid)> = if self.observed.is_any() { Some(&mut attach) } else { None };
        let started = start(command, &self.guard, note.as_bytes(), &groups, attach).map_err(|error| {
            group.remove();
            match error.kind() {
                io::ErrorKind::NotFound if !job.name.starts_with(&*job.words[0].to_string_lossy()) => {
                    io::Error::other(format!("{}: {error}", job.words[0].display()))
                }
                _ => error,
            }
        })?;
        Ok(Begun { group, started, observers })
    }
}

/// Makes the command of a job.
fn command(
    job: &BatchJob,
    (number, attempt): (usize, u32),
    [stdout, stderr]: &[PipeWriter; STREAMS],
    heartbeat: Option<&Heartbeat>,
) -> io::Result<Command> {
    let mut command = Command::new(&job.words[0]);
    command.args(&job.words[1..]).stdin(Stdio::null());
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    command.envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.env("GRISTMILL_JOB", (number + 1).to_string()).env("GRISTMILL_ATTEMPT", attempt.to_string());
    // One of another queue is not ours.
    command.env_remove(heartbeat::VARIABLE);
    command.envs(heartbeat.iter().map(|heartbeat| (heartbeat::VARIABLE, heartbeat.path())));
    if let Some(directory) = &job.directory {
        // The kernel's answer would not say whether the directory is missing or the program.
        let wrong = |why: &dyn Display| io::Error::other(format!("the directory {}: {why}", directory.display()));
        if !std::fs::metadata(directory).map_err(|error| wrong(&error))?.is_dir() {
            return Err(wrong(&"it is a file"));
        }
        command.current_dir(directory);
    }
    Ok(command)
}

/// A running program.
pub struct Running {
    pub job: usize,
    pub attempt: u32,
    /// The slot in which it runs, from 1: no two programs that run have the same.
    pub slot: usize,
    pub started: Start,
    pub began: Instant,
    pub at_ms: u64,
    pub capture: Capture,
    pub ending: Option<Ending>,
    pub observers: Observers,
    /// Its name in the history, by its files before it began; `None` if nobody asks.
    pub identity: Option<Identity>,
    /// Its processor time in the system's order, and in quanta whose programs were chosen.
    ordered_us: [u64; 2],
    group: Group,
    /// The kernel holds it to the memory that it asked for.
    has_limit: bool,
    /// When to look whether the kernel has killed a part of it for lack of memory.
    look_at: Option<Instant>,
    /// How often the kernel had killed for lack of memory when it began.
    kills_before: Option<u64>,
    /// Its processor time, if it is observed and has a cgroup.
    clock: Option<Clock>,
    is_stopped: bool,
    /// When its time is over.
    timeout_at: Option<Instant>,
    /// When SIGKILL follows SIGTERM.
    kill_at: Option<Instant>,
}

impl Running {
    /// Starts an attempt of a job, whose output goes to these pipes.
    pub fn start(
        attempt: &Attempt<'_>,
        means: &Means<'_>,
        (capture, outputs): (Capture, [PipeWriter; STREAMS]),
        identity: Option<Identity>,
    ) -> io::Result<Running> {
        let heartbeat = if means.observed.stages { Heartbeat::new().ok() } else { None };
        let Attempt { job, number, slot, .. } = *attempt;
        let kills_before = oom_kills();
        let (began, at_ms) = (Instant::now(), now_ms());
        let mut begun = means.begin(attempt, &outputs, heartbeat.as_ref());
        for _ in 1..GROUP_TRIES {
            match &begun {
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
                    begun = means.begin(attempt, &outputs, heartbeat.as_ref());
                }
                _ => break,
            }
        }
        let Begun { group, started, observers } = begun?;
        // A time beyond all clocks is no limit.
        let timeout_at = job.timeout.and_then(|timeout| began.checked_add(timeout));
        let has_limit = means.limits_of(job).is_some();
        Ok(Running {
            job: number,
            attempt: attempt.attempt,
            slot,
            started,
            began,
            at_ms,
            capture,
            ending: None,
            observers: Observers { heartbeat, ..observers },
            identity,
            ordered_us: [0; 2],
            clock: if means.observed.is_any() { group.clock() } else { None },
            group,
            has_limit,
            look_at: has_limit.then_some(began + LOOK),
            kills_before,
            is_stopped: false,
            timeout_at,
            kill_at: None,
        })
    }

    /// When [`Running::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Instant> {
        [self.kill_at.or(self.timeout_at), self.look_at].into_iter().flatten().min()
    }

    /// Ends it if its time is over, and kills it if it did not end when it was asked to.
    pub fn tick(&mut self, now: Instant) {
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.timeout_at = None;
            self.group.kill(&self.leaders());
        } else if self.ending.is_none() && self.timeout_at.is_some_and(|at| at <= now) {
            self.ask_to_end(Ending::TimedOut);
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = Some(now + LOOK);
            if self.group.memory_kills() > Some(0) {
                self.group.kill(&self.leaders());
            }
        }
    }

    /// Notes why it is being ended, unless it has ended by itself.
    fn note_ending(&mut self, why: Ending) {
        if self.ending.is_none() && !matches!(now_ended(self.started.pid), Ok(Some(_))) {
            self.ending = Some(why);
        }
    }

    /// Sends SIGTERM; SIGKILL follows.
    pub fn ask_to_end(&mut self, why: Ending) {
        self.note_ending(why);
        self.kill_at = Some(Instant::now() + GRACE);
        self.group.signal(&self.leaders(), Signal::TERM);
        let _ = self.group.resume(&self.leaders());
        self.is_stopped = false;
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.note_ending(Ending::Killed);
        self.kill_at = None;
        self.group.kill(&self.leaders());
    }

    /// Stops or continues the program with all its processes. One that is being ended is not stopped.
    pub fn set_stopped(&mut self, stopped: bool) -> io::Result<()> {
        let stopped = stopped && self.ending.is_none();
        if stopped != self.is_stopped {
            let set = if stopped { Group::stop } else { Group::resume };
            set(&self.group, &self.leaders())?;
            self.is_stopped = stopped;
        }
        Ok(())
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Microseconds of processor time so far. `counted_us` returns those that somebody else counts, if anybody does;
    /// the last resort lacks children that still run.
    pub fn processor_us(&self, counted_us: impl FnOnce() -> Option<u64>) -> u64 {
        self.clock.as_ref().and_then(Clock::us).or_else(counted_us).unwrap_or_else(|| {
            let pid = self.started.pid.as_raw_nonzero();
            ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()) * TICK_US
        })
    }

    /// Notes its processor time after a quantum whose programs the scheduler chose, or else the system.
    pub fn note_order(&mut self, is_chosen: bool, processor_us: u64) {
        let noted_us: u64 = self.ordered_us.iter().sum();
        self.ordered_us[usize::from(is_chosen)] += processor_us.saturating_sub(noted_us);
    }

    /// The share of its processor time in which the scheduler chose what runs.
    pub fn chosen(&self) -> f64 {
        let [usual, chosen] = self.ordered_us.map(|us| us as f64);
        if chosen > 0.0 { chosen / (usual + chosen) } else { 0.0 }
    }

    /// Returns the outcome of an ended program; `None` if it was ended on request. `incomplete` says why its output is
    /// not whole.
    pub fn outcome(&self, status: ExitStatus, incomplete: Option<String>) -> Option<Outcome> {
        match (incomplete.map_or_else(|| outcome_of(status), Outcome::Incomplete), self.ending) {
            (Outcome::Incomplete(why), _) => Some(Outcome::Incomplete(why)),
            // Many exit with 0 after SIGTERM, whether their work is done or not.
            (_, Some(Ending::TimedOut)) => Some(Outcome::TimedOut),
            (_, Some(Ending::Asked)) | (Outcome::Killed(KILL), Some(Ending::Killed)) => None,
            (outcome, None | Some(Ending::Killed)) if self.ran_out_of_memory(&outcome) => Some(Outcome::OutOfMemory),
            // Or it ended by itself at the same moment.
            (outcome, None | Some(Ending::Killed)) => Some(outcome),
        }
    }

    /// Returns true if the kernel killed it, or a part of it, for lack of memory. A shell tells only of the last
    /// command that it started, so with a limit every such kill counts, whatever the outcome.
    fn ran_out_of_memory(&self, outcome: &Outcome) -> bool {
        let is_killed = [Outcome::Killed(KILL), Outcome::Exited(SHELL_SIGNALS + KILL)].contains(outcome);
        (self.has_limit || is_killed)
            && match self.group.memory_kills() {
                Some(kills) => kills > 0,
                // Others may have been killed meanwhile, but SIGKILL has hardly any other reason.
                None => is_killed && oom_kills() > self.kills_before,
            }
    }

    fn leaders(&self) -> [Pid; 1] {
        [self.started.pid]
    }

    /// Ends what the program has left running, after its own end, and gives its group away, to be removed once it is
    /// empty. Returns true if it left anything.
    pub fn end_rest(&self) -> (Group, bool) {
        if self.group.remove() {
            return (self.group.clone(), false);
        }
        self.group.kill(&self.leaders());
        (self.group.clone(), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_includes_children_that_were_waited_for() {
        assert_eq!(ticks("7 (a) b) S 1 7 7 0 -1 4194560 90 80 0 0 3 2 10 20 20 0 1 0 99"), 35);
        assert_eq!(ticks(""), 0);
    }
}
