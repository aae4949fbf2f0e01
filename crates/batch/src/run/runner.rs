//! The scheduler: begins programs, sees them end, and hands on what they wrote.
//!
//! At the end of a program, in this order, so that a death at any moment neither loses the end nor repeats the program:
//!
//! 1. look how it ended, leave it in the kernel's table, and keep what is left of its output;
//! 2. write the end to the journal, which is synced a moment later, but before a job begins that waited for this one;
//! 3. tell the guard; from now on it does not look after the program;
//! 4. take it out of the kernel's table, end what it left running, and hand on its output.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::mem::replace;
use std::time::{Duration, Instant};

use gristmill_os::process::end_descendants;
use gristmill_os::program::{Freezer, MemoryLimits};
use gristmill_os::wake::Watch;
use gristmill_report::messages::tell;
use rustix::io::Errno;
use rustix::process::Signal;

use super::admission::Admission;
use super::before::Before;
use super::guard::{INTERRUPTED, Link};
use super::jobs::Jobs;
use super::kept::Kept;
use super::programs::{Ended, Programs};
use crate::journal_file::{Journal, now_ms};
use crate::list::List;
use crate::program::identity::Identity;
use crate::program::observed::Observed;
use crate::program::ready::Ready;
use crate::program::running::{Attempt, Means, Running};
use crate::queue::{BatchJob, Entry, Outcome, Queue};
use crate::report::live::seconds;
use crate::report::printer::Printer;
use crate::report::record::{Record, short};
use crate::report::reporter::{Reporter, Reports};

/// The errors that say that this process may have no more of something (open files, processes, memory, space on the
/// disk), that the guard has died, or that another queue removes our groups.
const LACKS: [Errno; 7] =
    [Errno::PIPE, Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOSPC, Errno::NODEV];

/// The time between two drawings of the table.
const REDRAW: Duration = Duration::from_millis(200);
/// The longest wait, after which all is looked at again.
const WAIT_MAX_MS: u128 = 3_600_000;

/// The event that ended a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    Moment,
    Running,
    Queue,
}

/// The running queue.
pub struct Runner<'a> {
    jobs: Jobs,
    admission: Admission,
    kept: Kept<'a>,
    programs: Programs<'a>,
    /// Gives the number of each signal that came.
    signals: PipeReader,
    watch: Watch,
    printer: Printer,
    /// When the table is drawn again.
    redraw_at: Instant,
    reporter: Reporter,
    /// The queue has halted, and what runs was ended if the rule says so.
    has_halted: bool,
    /// The number of requests to stop.
    stops: u32,
    /// The guard has died.
    is_alone: bool,
    /// It was said that nobody reads standard output any more.
    is_unread: bool,
    /// Something other than a program failed.
    is_broken: bool,
}

impl<'a> Runner<'a> {
    pub fn new(
        reports: Reports,
        list: List,
        (before, queue, admission): (Before, Queue, Admission),
        journal: Option<&'a Journal>,
        freezer: &'a Freezer,
        link: Link,
    ) -> io::Result<Runner<'a>> {
        let watch = Watch::new()?;
        watch.add(&link.signals, Ready::Signal.number())?;
        let means = Means { freezer, limits: None, observed: Observed::default(), guard: link.tell };
        let (programs, printer) = (Programs::new(means, reports.output.clone()), Printer::new(reports.style));
        let mut reporter = Reporter::new(reports);
        reporter.expect(list.jobs());
        Ok(Runner {
            jobs: Jobs::new(list, before, queue),
            admission,
            kept: Kept::new(journal),
            programs,
            signals: link.signals,
            watch,
            printer,
            redraw_at: Instant::now(),
            reporter,
            has_halted: false,
            stops: 0,
            is_alone: false,
            is_unread: false,
            is_broken: false,
        })
    }

    /// The reports on the programs.
    pub fn reporter(&mut self) -> &mut Reporter {
        &mut self.reporter
    }

    /// Prints the summary and returns the exit status.
    pub fn report(&self) -> i32 {
        let counts = self.jobs.queue.counts();
        self.reporter.summarise(self.jobs.all(), &self.jobs.queue);
        // As many have succeeded as were wanted.
        let is_enough = self.jobs.queue.halted().is_some_and(|halt| halt.is_of_success);
        let is_broken = self.is_broken || self.reporter.is_broken;
        match () {
            () if is_enough && self.stops == 0 && !is_broken => 0,
            () if self.stops > 0 && self.jobs.are_unfinished() => INTERRUPTED,
            () if is_broken || self.jobs.are_unfinished() || counts.failed + counts.skipped > 0 => 1,
            () => 0,
        }
    }

    /// Runs until the queue is over.
    pub fn run(&mut self) -> io::Result<()> {
        self.round(None, false)?;
        self.finish()
    }

    /// Runs until a moment or the end of the queue; with `at_end`, at most until a program has ended.
    pub fn round(&mut self, until: Option<Instant>, at_end: bool) -> io::Result<RoundEnd> {
        let ends = self.ends();
        while until.is_none_or(|until| Instant::now() < until) {
            if at_end && self.ends() > ends {
                return Ok(RoundEnd::Running);
            }
            let mut until = until;
            while let Some(job) = self.next_job()? {
                if !self.begin(job)? {
                    // It may be tried again and again, so signals are looked for in between.
                    until = Some(Instant::now());
                    break;
                }
            }
            self.halt();
            // A job that was refused has its turn without a step.
            self.printer.see(&self.jobs.queue);
            if self.jobs.queue.is_over() && self.programs.running.is_empty() && self.printer.next().is_none() {
                return Ok(RoundEnd::Queue);
            }
            self.step(until)?;
        }
        Ok(RoundEnd::Moment)
    }

    /// Returns the job that begins now, if any may.
    fn next_job(&mut self) -> io::Result<Option<usize>> {
        self.jobs.set_now();
        if !self.printer.has_room(!self.programs.running.is_empty()) || self.jobs.queue.next_job().is_none() {
            self.admission.is_idle();
            return Ok(None);
        }
        let now = Instant::now();
        if self.admission.admits(self.programs.young(self.jobs.all(), now), now)? {
            return Ok(self.jobs.queue.begin());
        }
        let running = self.programs.running.len();
        if (running == 0 || !self.reporter.reports.quiet)
            && let Some(news) = self.admission.news(running)
        {
            self.reporter.live.aside(|| tell(news));
        }
        Ok(None)
    }

    /// Says when the next job is tried again, if nothing runs until then.
    fn next_attempt(&self) -> Option<String> {
        let wait = self.jobs.retry_in().filter(|_| self.programs.running.is_empty())?;
        Some(format!("the next attempt is in {}", seconds(wait)))
    }

    /// Once the queue has halted, asks running programs to end if the rule says so, but none that runs whatever the
    /// outcome of others.
    fn halt(&mut self) {
        let Some(halt) = self.jobs.queue.halted().filter(|_| !self.has_halted) else { return };
        self.has_halted = true;
        if halt.ends_running {
            let queue = &self.jobs.queue;
            let count = self.programs.ask_to_end(|job| !queue.runs_anyway(job));
            if count > 0 && !self.reporter.reports.quiet {
                let why = if halt.is_of_success { "success" } else { "a failure" };
                let programs = if count == 1 {
                    "the program that still runs is".into()
                } else {
                    format!("{count} programs that still run are")
                };
                self.reporter.live.aside(|| tell(format_args!("after {why}, {programs} asked to end (--halt now)")));
            }
        }
    }

    /// Writes what was held back, and ends what was left behind.
    pub fn finish(&mut self) -> io::Result<()> {
        self.reporter.log_left(self.jobs.all(), &self.jobs.queue);
        self.sync();
        self.programs.finish()?;
        self.reporter.finish();
        Ok(())
    }

    /// The number of attempts that have ended.
    pub fn ends(&self) -> usize {
        self.reporter.records().len()
    }

    /// The running programs, by job.
    pub fn running(&mut self) -> &mut BTreeMap<usize, Running> {
        &mut self.programs.running
    }

    /// Observes each program that begins from now on.
    pub fn observe(&mut self, observed: Observed) {
        self.programs.means.observed = observed;
    }

    /// Limits the memory of each job that begins from now on and names an amount.
    pub fn limit_memory(&mut self, limits: Option<&'a MemoryLimits>) {
        self.programs.means.limits = limits;
    }

    /// The jobs so far.
    pub fn jobs(&self) -> &[BatchJob] {
        self.jobs.all()
    }

    /// Returns true if the list has ended, and its jobs usually take less than `seconds` altogether when `processors`
    /// share their work.
    pub fn is_short(&mut self, processors: usize, seconds: f64) -> bool {
        self.jobs.queue.is_closed() && self.reporter.recorder.is_shorter(self.jobs.all(), processors, seconds)
    }

    /// The records of what has ended.
    pub fn records(&self) -> &[Record] {
        self.reporter.records()
    }

    /// Returns a running program and its job.
    pub fn program(&mut self, job: usize) -> Option<(&BatchJob, &mut Running)> {
        self.programs.running.get_mut(&job).map(|program| (&self.jobs.all()[job], program))
    }

    /// Waits until something happens, and sees to it.
    fn step(&mut self, until: Option<Instant>) -> io::Result<()> {
        let now = Instant::now();
        let redraw = self.reporter.live.is_shown().then_some(self.redraw_at);
        let retry = self.jobs.retry_at();
        let look = self.admission.looks_at(now);
        let (tick, sync) = (self.programs.next_tick(), self.kept.sync_at());
        let next = [until, tick, redraw, sync, self.printer.next(), retry, look].into_iter().flatten().min();
        let wait_ms = next.map(|next| next.saturating_duration_since(now).as_millis().min(WAIT_MAX_MS) as u32 + 1);
        let mut ended = Vec::new();
        self.jobs.watch(&self.watch)?;
        for ready in self.watch.wait(wait_ms)? {
            match Ready::of(ready) {
                Ready::Signal => self.take_signal()?,
                Ready::List => self.take_in_jobs()?,
                Ready::End { job } => ended.push(job),
                Ready::Stream { job, stream } if !self.programs.drain(job, stream, &self.watch)? => {
                    self.jobs.queue.stop()
                }
                Ready::Stream { .. } => {}
            }
        }
        self.end(&ended)?;
        self.print_some();
        let now = Instant::now();
        self.programs.tick(now);
        if self.kept.sync_at().is_some_and(|at| at <= now) {
            self.sync();
        }
        if self.redraw_at <= now {
            let held = self.admission.held().map(|held| held.words().to_owned()).or_else(|| self.next_attempt());
            self.reporter.show(self.jobs.all(), &self.jobs.queue, &self.programs.running, held.as_deref());
            self.redraw_at = now + REDRAW;
        }
        Ok(())
    }

    /// Takes in the jobs that have arrived.
    fn take_in_jobs(&mut self) -> io::Result<()> {
        match self.jobs.take_in(&self.watch)? {
            Ok(new) => self.reporter.expect(&self.jobs.all()[new]),
            Err(failure) => self.break_off(format_args!("{failure}. No further program begins")),
        }
        Ok(())
    }

    /// Begins a job. Returns false if that was refused.
    fn begin(&mut self, job: usize) -> io::Result<bool> {
        let attempt = self.jobs.queue.attempts(job);
        if !self.jobs.all()[job].after.is_empty() || self.jobs.queue.runs_anyway(job) {
            self.sync();
        }
        self.write(&[self.jobs.start_of(job)]);
        let ((of, key), slot) = (self.jobs.keyed(job), self.programs.free_slot());
        let is_asked = self.programs.means.observed.is_any() || self.reporter.recorder.keeps();
        let identity = is_asked.then(|| Identity::of(of));
        let begun = Attempt { number: job, job: &of.in_slot(slot), key, attempt, slot };
        match self.programs.begin(&begun, identity.clone()) {
            Ok(()) => {
                self.programs.watch(job, &self.watch)?;
                self.printer.begin(job, of);
                Ok(true)
            }
            Err(error) => {
                self.refuse((job, slot), identity, &error);
                Ok(false)
            }
        }
    }

    /// Records that a job could not begin.
    fn refuse(&mut self, (job, slot): (usize, usize), identity: Option<Identity>, error: &io::Error) {
        // What this process lacks says nothing of the job, so it has no end in the journal, and --resume runs it.
        let is_lack = error.raw_os_error().is_some_and(|code| LACKS.contains(&Errno::from_raw_os_error(code)));
        let outcome = Outcome::Refused(error.to_string());
        // The program may have written that it begins.
        self.programs.tell_guard(job);
        let again = self.jobs.queue.end(job, outcome.clone());
        if !again && !is_lack {
            self.write(&[self.jobs.end_of(job, outcome.clone())]);
        }
        let record = Record {
            job,
            attempt: self.jobs.queue.attempts(job),
            at_ms: now_ms(),
            outcome: Some(outcome),
            again,
            tier: self.reporter.tier(),
            identity,
            ..Record::default()
        };
        self.report_on(slot, record);
    }

    /// Sees programs end.
    fn end(&mut self, jobs: &[usize]) -> io::Result<()> {
        self.jobs.set_now();
        // 1. How each ended.
        let (mut ends, mut left) = (Vec::new(), Vec::new());
        for ended in self.programs.ended(jobs, &self.watch)? {
            let Ended { job, outcome } = &ended;
            let again = outcome.as_ref().is_some_and(|outcome| self.jobs.queue.end(*job, outcome.clone()));
            if outcome.is_none() {
                self.jobs.queue.interrupt(*job);
            }
            if let (Some(outcome), false) = (outcome.as_ref().filter(|outcome| outcome.is_end()), again) {
                ends.push(self.jobs.end_of(*job, outcome.clone()));
            }
            left.push((ended, again));
        }
        // 2. In the journal.
        self.write(&ends);
        left.into_iter().try_for_each(|(ended, again)| self.take(ended, again))
    }

    /// Takes out a program whose end is in the journal, and reports on it.
    fn take(&mut self, Ended { job, outcome }: Ended, again: bool) -> io::Result<()> {
        // 3. and 4.
        let (slot, record, capture) = self.programs.take(job, &self.watch)?;
        self.admission.note_used(record.used.memory_bytes);
        let ended_with_queue = self.is_alone && record.ended_with_queue;
        let record = Record { outcome, again, ended_with_queue, tier: self.reporter.tier(), ..record };
        if let Some(Outcome::Incomplete(why)) = &record.outcome {
            let name = short(&self.jobs.all()[job].name);
            self.break_off(format_args!("the output of {name} is incomplete: {why}. No further program begins"));
        }
        if let Err(error) = self.printer.end(job, capture) {
            self.break_off(format_args!("the output of a program cannot be read: {error}"));
        }
        self.report_on(slot, record);
        Ok(())
    }

    fn report_on(&mut self, slot: usize, record: Record) {
        let job = record.job;
        let line = self.reporter.note(&self.jobs.all()[job].in_slot(slot), record);
        line.into_iter().for_each(|line| self.printer.add(job, line));
    }

    /// Prints as much of the programs' output as there is room for.
    fn print_some(&mut self) {
        self.printer.see(&self.jobs.queue);
        loop {
            let printed = self.printer.print_some(&self.programs.running, &self.reporter.live, self.is_alone);
            self.revoke_lost();
            match printed {
                Ok(()) => return,
                // Nobody reads any more, as with `| head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.stop_unread(),
                Err(_) if self.is_broken => {}
                Err(error) => {
                    let then = match self.kept.is_there() {
                        true => "--resume runs programs again whose output was not printed",
                        false => "what is not printed is lost; --output DIR would keep it",
                    };
                    self.break_off(format_args!("the output of programs cannot be printed: {error}; {then}"));
                }
            }
        }
    }

    /// Begins no further program, because nobody reads the output of programs any more, and says so if that leaves
    /// some.
    fn stop_unread(&mut self) {
        if self.jobs.are_unfinished() && self.stops == 0 && !replace(&mut self.is_unread, true) {
            let why = "nobody reads standard output any more, so no further program begins";
            self.reporter.live.aside(|| tell(why));
        }
        self.jobs.queue.stop();
    }

    /// Writes to the journal that programs whose output was lost begin again: what nobody has seen is not done.
    fn revoke_lost(&mut self) {
        let lost = self.printer.take_lost().into_iter().filter(|job| !self.programs.running.contains_key(job));
        let again: Vec<Entry> = lost.map(|job| self.jobs.start_of(job)).collect();
        self.write(&again);
    }

    /// Writes to the journal. If that fails, no further program begins.
    fn write(&mut self, entries: &[Entry]) {
        if let Err(why) = self.kept.write(entries) {
            self.break_off(format_args!("{why}"));
        }
    }

    /// Waits until all ends that were written are on the disk.
    fn sync(&mut self) {
        if let Err(why) = self.kept.sync() {
            self.break_off(format_args!("{why}"));
        }
    }

    fn break_off(&mut self, why: std::fmt::Arguments<'_>) {
        self.reporter.live.aside(|| tell(why));
        self.is_broken = true;
        self.jobs.queue.stop();
    }

    fn take_signal(&mut self) -> io::Result<()> {
        let mut signals = [0; 16];
        let count = self.signals.read(&mut signals)?;
        if count == 0 {
            self.watch.remove(&self.signals)?;
            self.is_alone = true;
            self.break_off(format_args!("the watchdog died, so the programs are ended"));
            self.end_programs();
        }
        for signal in &signals[..count] {
            // A service manager, `timeout` or a container that sends SIGTERM expects the queue to end.
            let least = match i32::from(*signal) {
                signal if signal == Signal::QUIT.as_raw() => 3,
                signal if signal == Signal::TERM.as_raw() => 2,
                _ => 0,
            };
            self.stops = least.max(self.stops + 1);
            self.jobs.queue.stop();
            let running = self.programs.running.len();
            match self.stops {
                1 if running > 0 && !self.reporter.reports.quiet => self.reporter.live.aside(|| {
                    tell(format_args!("no further program begins; {running} still run. Once more ends them"));
                }),
                1 => {}
                2 => _ = self.programs.ask_to_end(|_| true),
                _ => {
                    self.end_programs();
                    self.printer.clear();
                    self.revoke_lost();
                }
            }
        }
        Ok(())
    }

    /// Kills all programs; their ends are seen later.
    pub fn end_programs(&mut self) {
        self.jobs.queue.stop();
        self.programs.kill_all();
    }

    /// Ends everything at once, after a failure of the queue itself.
    pub fn end_all(&mut self) {
        self.end_programs();
        let _ = end_descendants();
    }
}
