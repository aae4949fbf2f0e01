//! The watchdog: the process that the user started. The programs are run by a copy of it, the scheduler.
//!
//! ```text
//!  guard  --- signals ----------------------------------> scheduler
//!         <-- "streams JOB COUNT" with its pipes              |
//!         <-- "start JOB ATTEMPT LAST KEY PID", "end JOB"    | starts
//!                       ^                                    v
//!                       +------ "start" ----------------- programs
//! ```
//!
//! A program itself writes its line before it begins, so the guard knows of every one that has begun.
//!
//! 1. The scheduler ends: so does the guard, with its exit status.
//! 2. The scheduler dies: its programs become children of the guard. Those that have ended by themselves are written
//!    to the journal, once what they left in their pipes is in the files of `--output`; the others are ended, stopped
//!    or not, and run again with `--resume`. So does one whose output cannot be kept.
//! 3. The guard dies: the scheduler sees that nobody holds the other end of the signals, and does the same with its
//!    programs.
//!
//! Ctrl-C reaches both; only the guard takes it, so that it counts once.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Write};
use std::mem::forget;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::queue::Entry;
use gristmill_os::process::{Death, end_descendants, fork_worker};
use gristmill_os::program::{Freezer, now_ended, reap};
use gristmill_os::stop::Stop;
use gristmill_os::wake::poll;
use rustix::process::{Pid, getpid, set_child_subreaper, set_parent_process_death_signal};

use crate::journal_file::{Journal, now_ms};
use crate::program::handed::Handed;
use crate::program::running::{group_name, outcome_of};
use gristmill_report::messages::tell;

/// The knowledge that guard and scheduler share.
pub struct Watched<'a> {
    pub journal: Option<&'a Journal>,
    pub freezer: &'a Freezer,
}

/// The scheduler's ends of the pipes.
pub struct Link {
    /// Takes the lines about programs.
    pub tell: UnixStream,
    /// Gives the number of each signal that came; ends if the guard has died.
    pub signals: PipeReader,
}

/// A program that has begun, as known to the guard.
struct Begun {
    attempt: u32,
    /// It is not tried again, however it ends.
    is_last: bool,
    /// The key of its job in the journal.
    key: String,
    pid: Pid,
}

/// Runs `schedule` in a copy of this process, and cleans up after it. Returns its exit status.
pub fn guarded(plan: &Watched<'_>, schedule: impl FnOnce(Link) -> i32) -> io::Result<i32> {
    set_child_subreaper(Some(getpid()))?;
    let (told, tell_end) = UnixStream::pair()?;
    let (signals, send) = io::pipe()?;
    let (mut told, mut send) = (Some(told), Some(send));
    let link = Link { tell: tell_end, signals };
    let mut scheduler = fork_worker(|| {
        // The guard's ends are closed in the copy, or it would not see the guard's death.
        drop((told.take(), send.take()));
        let prepared = Stop::with_quit().and_then(|stop| {
            set_parent_process_death_signal(None)?;
            set_child_subreaper(Some(getpid()))?;
            Ok(stop)
        });
        match prepared {
            Ok(stop) => {
                let code = schedule(link);
                // The signals of a terminal reach this process too, and wait: without this, they would end it now.
                forget(stop);
                code
            }
            Err(error) => {
                tell(error);
                1
            }
        }
    })
    .map_err(io::Error::other)?;
    let stop = Stop::with_quit()?;
    let (mut lines, mut known) = (Lines::default(), BTreeMap::new());
    let ends = told.take().zip(send.take());
    let (mut told, mut send) = ends.expect("they were taken in the copy only");
    let mut last_signal = 0;
    loop {
        let ready = poll(&[scheduler.pidfd(), stop.fd(), told.as_fd()], None)?;
        if ready.contains(&2) && !lines.read(&mut told, &mut known)? && !ready.contains(&0) {
            // Nobody writes any more: the scheduler is about to end.
            poll(&[scheduler.pidfd()], None)?;
        }
        if ready.contains(&1)
            && let Some(signal) = stop.taken()
        {
            last_signal = signal;
            // If nobody reads, the scheduler has died, which is seen next.
            let _ = send.write_all(&[signal as u8]);
        }
        if ready.contains(&0) {
            break;
        }
    }
    match scheduler.wait()? {
        Death::Exited(code) if code == INTERRUPTED => {
            stop.end_by(last_signal);
            Ok(1)
        }
        Death::Exited(code) if code < 100 => Ok(code),
        death => {
            while lines.read(&mut told, &mut known)? {}
            clean_up(plan, &known, &mut lines.handed)?;
            let hint = match plan.journal {
                Some(_) => "what has ended is in the journal, and --resume continues".to_owned(),
                None => "with --journal, --resume could continue".to_owned(),
            };
            tell(format_args!("the scheduler died ({death}). Its programs were ended; {hint}"));
            Ok(1)
        }
    }
}

/// The exit status of a scheduler that was asked to end by a signal.
pub const INTERRUPTED: i32 = 99;

/// Lines that arrive in pieces, some with the streams of a program.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    handed: Handed,
}

impl Lines {
    /// Reads what there is. Returns false at the end.
    fn read(&mut self, from: &mut UnixStream, known: &mut BTreeMap<usize, Begun>) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let count = self.handed.read(from, &mut piece)?;
        self.begun.extend_from_slice(&piece[..count]);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            take_in(&String::from_utf8_lossy(&line), known, &mut self.handed);
        }
        Ok(count > 0)
    }
}

fn take_in(line: &str, known: &mut BTreeMap<usize, Begun>, handed: &mut Handed) {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words[..] {
        ["start", job, attempt, is_last, key, pid] => {
            if let (Ok(job), Ok(attempt), Some(pid)) =
                (job.parse(), attempt.parse(), pid.parse().ok().and_then(Pid::from_raw))
            {
                known.insert(job, Begun { attempt, is_last: is_last == "1", key: key.to_owned(), pid });
            }
        }
        ["streams", job, count] => {
            if let (Ok(job), Ok(count)) = (job.parse(), count.parse()) {
                handed.note(job, count);
            }
        }
        ["end", job] => {
            if let Ok(job) = job.parse() {
                known.remove(&job);
                handed.forget(job);
            }
        }
        _ => {}
    }
}

/// Saves the rest of the output of a program that has ended. Returns false, and tells the user, if that fails.
fn is_kept(handed: &mut Handed, job: usize) -> bool {
    handed.keep(job).unwrap_or_else(|error| {
        tell(format_args!("the output of job {} is incomplete, so it has no end in the journal: {error}", job + 1));
        false
    })
}

/// The time after which the guard no longer waits for programs that it has killed: one may hang in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends all programs of a scheduler that has died, and writes those that had ended by themselves to the journal.
fn clean_up(plan: &Watched<'_>, known: &BTreeMap<usize, Begun>, handed: &mut Handed) -> io::Result<()> {
    // 1. End what runs. A program that ends by itself at this moment has a status that says so.
    for (job, begun) in known {
        if !matches!(now_ended(begun.pid), Ok(Some(_))) {
            plan.freezer.known_group(&group_name(*job, begun.attempt)).kill(&[begun.pid]);
        }
    }
    // 2. Write down what ended by itself, and whose output is kept.
    let mut ends = Vec::new();
    let began = Instant::now();
    for (job, begun) in known {
        let mut status = now_ended(begun.pid);
        while matches!(status, Ok(None)) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            status = now_ended(begun.pid);
        }
        let Ok(Some(status)) = status else { continue };
        let outcome = outcome_of(status);
        // Killed is what we did.
        let is_last = outcome.is_success() || begun.is_last;
        if outcome != crate::queue::Outcome::Killed(9) && is_last && is_kept(handed, *job) {
            ends.push(Entry::End { key: begun.key.clone(), outcome, at_ms: now_ms() });
        }
    }
    if let Some(journal) = plan.journal {
        journal.take_over()?;
        journal.append(&ends)?;
        journal.sync()?;
    }
    // 3. End what they left, and reap all.
    known.values().for_each(|begun| drop(reap(begun.pid)));
    end_descendants()?;
    for (job, begun) in known {
        let group = plan.freezer.known_group(&group_name(*job, begun.attempt));
        let began = Instant::now();
        while !group.remove() && began.elapsed() < PATIENCE {
            group.kill(&[]);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}
