//! The scheduler: begins programs, sees them end, and hands on what they wrote.
//!
//! At the end of a program, in this order, so that a death at any moment neither loses the end nor repeats the program:
//!
//! 1. look how it ended, leave it in the kernel's table, and keep what is left of its output;
//! 2. write the end to the journal, which is synced a moment later, but before a job begins that waited for this one;
//! 3. tell the guard; from now on it does not look after the program;
//! 4. take it out of the kernel's table, end what it left running, and hand on its output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::mem::replace;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gristmill_os::process::end_descendants;
use gristmill_os::program::{Freezer, MemoryLimits, now_ended, reap};
use gristmill_os::wake::Watch;
use gristmill_queue::{Entry, Job, Outcome, Past, Queue, Rules};
use rustix::io::Errno;
use rustix::process::Signal;

use super::admission::{Admission, Young};
use super::capture::Capture;
use super::guard::{INTERRUPTED, Link};
use super::handed::hand_over;
use super::identity::Identity;
use super::journal::{Journal, now_ms};
use super::list::List;
use super::live::seconds;
use super::printer::Printer;
use super::program::{Ending, Observed, Program, outcome_of};
use super::ready::Ready;
use super::record::{Record, short};
use super::remains::{Remains, SWEEP};
use super::reporter::{Reporter, Reports};
use crate::terminal::messages::{printable, tell};

/// The signal that nothing can survive.
const KILL: i32 = Signal::KILL.as_raw();

/// The errors that say that this process may have no more of something (open files, processes, memory, space on the disk), that the guard has died, or that another
/// queue removes our groups.
const LACKS: [Errno; 7] =
    [Errno::PIPE, Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOSPC, Errno::NODEV];
/// How often a program is started again whose group another queue took for one that was left over, and removed.
const GROUP_TRIES: usize = 10;

/// The jobs that wait from which on no more of the list is read: `yes | gristmill batch` never ends.
const WAITING_MAX: usize = 100_000;
/// The time between two drawings of the table.
const REDRAW: Duration = Duration::from_millis(200);
/// The time between two syncs of the journal, unless a job waits for one.
const SYNC: Duration = Duration::from_millis(50);

/// The longest wait, after which all is looked at again.
const WAIT_MAX_MS: u128 = 3_600_000;

/// What a round came to: the given moment, the end of a program, or the end of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    Moment,
    Program,
    Queue,
}

/// The jobs that had ended before this queue.
#[derive(Default)]
pub struct Before {
    pub past: Past,
    /// Jobs that failed run again.
    pub retries_failed: bool,
}

impl Before {
    /// Adds jobs to a queue, in which those have ended that ended before.
    pub fn add(&self, list: &List, from: usize, queue: &mut Queue) {
        queue.add(&list.jobs()[from..]);
        for job in from..list.jobs().len() {
            match self.past.ended.get(list.key(job)) {
                Some(outcome) if outcome.is_success() || !self.retries_failed => queue.restore(job, outcome.clone()),
                _ => {}
            }
        }
        if list.file().is_none() {
            queue.close();
        }
    }

    /// Makes the queue of a list.
    pub fn queue(&self, list: &List, rules: Rules) -> Queue {
        let mut queue = Queue::open(rules);
        self.add(list, 0, &mut queue);
        queue
    }
}

/// The running queue.
pub struct Runner<'a> {
    list: List,
    before: Before,
    queue: Queue,
    admission: Admission,
    began: Instant,
    /// The list is among what is waited for.
    awaits_list: bool,
    /// `None` without a journal, or after a problem with it.
    journal: Option<&'a Journal>,
    freezer: &'a Freezer,
    /// Limits the memory of jobs that name an amount.
    limits: Option<&'a MemoryLimits>,
    link: Link,
    watch: Watch,
    running: BTreeMap<usize, Program>,
    remains: Remains,
    printer: Printer,
    /// When the table is drawn, and what was left running is ended, again.
    redraw_at: Instant,
    sweep_at: Instant,
    reporter: Reporter,
    observed: Observed,
    output: Option<PathBuf>,
    /// When the first end was written that may not be on the disk.
    unsynced_since: Option<Instant>,
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
        reports: &Reports,
        list: List,
        (before, queue, admission): (Before, Queue, Admission),
        journal: Option<&'a Journal>,
        freezer: &'a Freezer,
        link: Link,
    ) -> io::Result<Runner<'a>> {
        let watch = Watch::new()?;
        watch.add(&link.signals, Ready::Signal.number())?;
        let mut reporter = Reporter::new(reports);
        reporter.expect(list.jobs());
        Ok(Runner {
            list,
            before,
            queue,
            admission,
            began: Instant::now(),
            awaits_list: false,
            journal,
            freezer,
            limits: None,
            link,
            watch,
            running: BTreeMap::new(),
            remains: Remains::default(),
            printer: Printer::new(reports.style),
            redraw_at: Instant::now(),
            sweep_at: Instant::now(),
            reporter,
            observed: Observed::default(),
            output: reports.output.clone(),
            unsynced_since: None,
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
        let counts = self.queue.counts();
        self.reporter.summarise(self.list.jobs(), &self.queue);
        // As many have succeeded as were wanted.
        let is_enough = self.queue.halted().is_some_and(|halt| halt.is_of_success);
        let is_broken = self.is_broken || self.reporter.is_broken;
        match () {
            () if is_enough && self.stops == 0 && !is_broken => 0,
            () if self.stops > 0 && self.is_unfinished() => INTERRUPTED,
            () if is_broken || self.is_unfinished() || counts.failed + counts.skipped > 0 => 1,
            () => 0,
        }
    }

    /// Returns true if jobs wait, or may arrive.
    fn is_unfinished(&self) -> bool {
        self.queue.counts().waiting > 0 || !self.queue.is_closed()
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
                return Ok(RoundEnd::Program);
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
            self.printer.see(&self.queue);
            if self.queue.is_over() && self.running.is_empty() && self.printer.next().is_none() {
                return Ok(RoundEnd::Queue);
            }
            self.step(until)?;
        }
        Ok(RoundEnd::Moment)
    }

    /// Returns the job that begins now, if any may.
    fn next_job(&mut self) -> io::Result<Option<usize>> {
        self.queue.set_now(self.began.elapsed());
        if !self.printer.has_room(!self.running.is_empty()) || self.queue.next_job().is_none() {
            self.admission.is_idle();
            return Ok(None);
        }
        let (now, jobs) = (Instant::now(), self.list.jobs());
        let young =
            |program: &Program| Young { age: now - program.began, memory_bytes: jobs[program.job].memory_bytes };
        if self.admission.admits(self.running.values().map(young), now)? {
            return Ok(self.queue.begin());
        }
        let running = self.running.len();
        if (running == 0 || !self.reporter.quiet)
            && let Some(news) = self.admission.news(running)
        {
            self.reporter.live.aside(|| tell(news));
        }
        Ok(None)
    }

    /// Says when the next job is tried again, if nothing runs until then.
    fn next_attempt(&self) -> Option<String> {
        let at = self.queue.next_retry().filter(|_| self.running.is_empty())?;
        Some(format!("the next attempt is in {}", seconds(at.saturating_sub(self.began.elapsed()))))
    }

    /// Once the queue has halted, asks running programs to end if the rule says so, but none that runs whatever the outcome of others.
    fn halt(&mut self) {
        let Some(halt) = self.queue.halted().filter(|_| !self.has_halted) else { return };
        self.has_halted = true;
        if halt.ends_running {
            let queue = &self.queue;
            let asked = self.running.iter_mut().filter(|(job, _)| !queue.runs_anyway(**job));
            let count = asked.map(|(_, program)| program.ask_to_end(Ending::Asked)).count();
            if count > 0 && !self.reporter.quiet {
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
        self.reporter.log_left(self.list.jobs(), &self.queue);
        self.sync();
        while !self.remains.is_empty() {
            std::thread::sleep(SWEEP);
            self.sweep();
        }
        self.reporter.finish();
        // Programs that left their session, where there are no cgroups.
        end_descendants()?;
        Ok(())
    }

    /// The number of attempts that have ended.
    pub fn ends(&self) -> usize {
        self.reporter.records().len()
    }

    /// The running programs, by job.
    pub fn running(&mut self) -> &mut BTreeMap<usize, Program> {
        &mut self.running
    }

    /// Observes each program that begins from now on.
    pub fn observe(&mut self, observed: Observed) {
        self.observed = observed;
    }

    /// Limits the memory of each job that begins from now on and names an amount.
    pub fn limit_memory(&mut self, limits: Option<&'a MemoryLimits>) {
        self.limits = limits;
    }

    /// The jobs so far.
    pub fn jobs(&self) -> &[Job] {
        self.list.jobs()
    }

    /// Returns true if the list has ended, and its jobs usually take less than `seconds` altogether when `processors` share their work.
    pub fn is_short(&mut self, processors: usize, seconds: f64) -> bool {
        self.queue.is_closed() && self.reporter.recorder.is_shorter(self.list.jobs(), processors, seconds)
    }

    /// The records of what has ended.
    pub fn records(&self) -> &[Record] {
        self.reporter.records()
    }

    /// Returns a running program and its job.
    pub fn program(&mut self, job: usize) -> Option<(&Job, &mut Program)> {
        self.running.get_mut(&job).map(|program| (&self.list.jobs()[job], program))
    }

    /// Waits until something happens, and sees to it.
    fn step(&mut self, until: Option<Instant>) -> io::Result<()> {
        let now = Instant::now();
        let ticks = self.running.values().filter_map(Program::next_tick).min();
        let redraw = self.reporter.live.is_shown().then_some(self.redraw_at);
        let sweep = (!self.remains.is_empty()).then_some(self.sweep_at);
        let sync = self.unsynced_since.map(|since| since + SYNC);
        let retry = self.queue.next_retry().and_then(|at| self.began.checked_add(at));
        let look = self.admission.looks_at(now);
        let next = [until, ticks, redraw, sweep, sync, self.printer.next(), retry, look].into_iter().flatten().min();
        let wait_ms = next.map(|next| next.saturating_duration_since(now).as_millis().min(WAIT_MAX_MS) as u32 + 1);
        let mut ended = Vec::new();
        self.watch_list()?;
        for ready in self.watch.wait(wait_ms)? {
            match Ready::of(ready) {
                Ready::Signal => self.take_signal()?,
                Ready::List => self.take_in_jobs()?,
                Ready::End { job } => ended.push(job),
                Ready::Stream { job, stream } => self.drain(job, stream)?,
            }
        }
        self.end(&ended)?;
        self.print_some();
        let now = Instant::now();
        self.running.values_mut().for_each(|program| program.tick(now));
        if self.unsynced_since.is_some_and(|since| since + SYNC <= now) {
            self.sync();
        }
        // Programs that print much wake this process far more often.
        if self.sweep_at <= now {
            self.sweep();
            self.sweep_at = now + SWEEP;
        }
        if self.redraw_at <= now {
            let held = self.admission.held().map(|held| held.words().to_owned()).or_else(|| self.next_attempt());
            self.reporter.show(self.list.jobs(), &self.queue, &self.running, held.as_deref());
            self.redraw_at = now + REDRAW;
        }
        Ok(())
    }

    /// Waits for more of the list, unless enough jobs wait or none will begin.
    fn watch_list(&mut self) -> io::Result<()> {
        let wants_more = !self.queue.is_stopped() && self.queue.counts().waiting < WAITING_MAX;
        if let Some(file) = self.list.file()
            && wants_more != self.awaits_list
        {
            if wants_more {
                self.watch.add(file, Ready::List.number())?
            } else {
                self.watch.remove(file)?
            }
            self.awaits_list = wants_more;
        }
        Ok(())
    }

    /// Keeps what a program has written. One whose output cannot be kept is ended, and no further one begins.
    fn drain(&mut self, job: usize, stream: usize) -> io::Result<()> {
        let Some(program) = self.running.get_mut(&job) else { return Ok(()) };
        if !program.capture.drain(stream, &self.watch)? {
            program.ask_to_end(Ending::Asked);
            self.queue.stop();
        }
        Ok(())
    }

    /// Takes in the jobs that have arrived.
    fn take_in_jobs(&mut self) -> io::Result<()> {
        // The list closes its file at its end.
        if let Some(file) = self.list.file() {
            self.watch.remove(file)?;
            self.awaits_list = false;
        }
        match self.list.take_in() {
            Ok(new) => {
                self.before.add(&self.list, new.start, &mut self.queue);
                self.reporter.expect(&self.list.jobs()[new]);
            }
            Err(failure) => self.break_off(format_args!("{failure}. No further program begins")),
        }
        Ok(())
    }

    /// Returns the first slot in which no program runs.
    fn free_slot(&self) -> usize {
        let taken: BTreeSet<usize> = self.running.values().map(|program| program.slot).collect();
        (1..).find(|slot| !taken.contains(slot)).expect("there are more numbers than programs")
    }

    /// Begins a job. Returns false if that was refused.
    fn begin(&mut self, job: usize) -> io::Result<bool> {
        let slot = self.free_slot();
        let attempt = self.queue.attempts(job);
        if !self.list.jobs()[job].after.is_empty() || self.queue.runs_anyway(job) {
            self.sync();
        }
        self.write(&[Entry::Start { key: self.list.key(job).to_owned(), attempt, at_ms: now_ms() }]);
        let (of, key) = (&self.list.jobs()[job], self.list.key(job));
        let is_asked = self.observed.is_any() || self.reporter.recorder.keeps();
        let identity = is_asked.then(|| Identity::of(of));
        let start = || {
            let observed = (&self.observed, identity.clone());
            let placed = of.in_slot(slot);
            let captured = Capture::begin(self.output.as_deref(), (job, of), key, attempt)?;
            hand_over(&self.link.tell, job, &captured.0)?;
            let means = (self.freezer, self.limits);
            Program::start((job, &placed, key), attempt, slot, means, captured, &self.link.tell, observed)
        };
        let lost_its_group = |started: &io::Result<Program>| {
            started.as_ref().is_err_and(|error| error.raw_os_error() == Some(Errno::NODEV.raw_os_error()))
        };
        let mut started = start();
        for _ in 0..GROUP_TRIES {
            if lost_its_group(&started) {
                started = start();
            }
        }
        match started {
            Ok(program) => {
                self.watch.add(&program.started.pidfd, Ready::End { job }.number())?;
                program.capture.watch(&self.watch)?;
                self.printer.begin(job, &self.list.jobs()[job]);
                self.running.insert(job, program);
                Ok(true)
            }
            Err(error) => {
                // What this process lacks says nothing of the job, so it has no end in the journal, and --resume runs it.
                let is_lack = error.raw_os_error().is_some_and(|code| LACKS.contains(&Errno::from_raw_os_error(code)));
                let outcome = Outcome::Refused(error.to_string());
                // The program may have written that it begins.
                self.tell_guard(job);
                let again = self.queue.end(job, outcome.clone());
                if !again && !is_lack {
                    self.write(&[self.end_of(job, outcome.clone())]);
                }
                let record = Record {
                    job,
                    attempt,
                    at_ms: now_ms(),
                    took: Duration::ZERO,
                    outcome: Some(outcome),
                    ended_with_queue: false,
                    again,
                    used: Default::default(),
                    left_processes: false,
                    folder: None,
                    tier: self.reporter.tier(),
                    chosen: 0.0,
                    identity,
                };
                let line = self.reporter.note(&self.list.jobs()[job].in_slot(slot), record);
                line.into_iter().for_each(|line| self.printer.add(job, line));
                Ok(false)
            }
        }
    }

    /// Sees programs end.
    fn end(&mut self, jobs: &[usize]) -> io::Result<()> {
        self.queue.set_now(self.began.elapsed());
        // 1. How each ended.
        let (mut ends, mut ended) = (Vec::new(), Vec::new());
        for job in jobs {
            let Some(program) = self.running.get_mut(job) else { continue };
            let Some(status) = now_ended(program.started.pid)? else { continue };
            let incomplete = program.capture.finish(&self.watch)?.map(Outcome::Incomplete);
            let outcome = match (incomplete.unwrap_or_else(|| outcome_of(status)), program.ending) {
                (Outcome::Incomplete(why), _) => Some(Outcome::Incomplete(why)),
                // Many exit with 0 after SIGTERM, whether their work is done or not.
                (_, Some(Ending::TimedOut)) => Some(Outcome::TimedOut),
                (_, Some(Ending::Asked)) | (Outcome::Killed(KILL), Some(Ending::Killed)) => None,
                (outcome, None | Some(Ending::Killed)) if program.ran_out_of_memory(&outcome) => {
                    Some(Outcome::OutOfMemory)
                }
                // Or it ended by itself at the same moment.
                (outcome, None | Some(Ending::Killed)) => Some(outcome),
            };
            let again = match &outcome {
                Some(outcome) => self.queue.end(*job, outcome.clone()),
                None => {
                    self.queue.interrupt(*job);
                    false
                }
            };
            if let (Some(outcome), false) = (outcome.as_ref().filter(|outcome| outcome.is_end()), again) {
                ends.push(self.end_of(*job, outcome.clone()));
            }
            ended.push((*job, outcome, again));
        }
        // 2. In the journal.
        self.write(&ends);
        for (job, outcome, again) in ended {
            let mut program = self.running.remove(&job).expect("it ran");
            self.watch.remove(&program.started.pidfd)?;
            // 3.
            self.tell_guard(job);
            // 4.
            let took = program.began.elapsed();
            let used = reap(program.started.pid)?;
            self.admission.note_used(used.memory_bytes);
            let (group, left_processes) = program.end_rest();
            if left_processes {
                self.remains.add(group);
            }
            let folder = program.capture.folder.clone();
            let (attempt, at_ms, slot) = (program.attempt, program.at_ms, program.slot);
            let (tier, chosen) = (self.reporter.tier(), program.chosen());
            let ended_with_queue = self.is_alone && program.ending == Some(Ending::Killed);
            let identity = program.identity.take();
            if let Some(Outcome::Incomplete(why)) = &outcome {
                let name = short(&self.list.jobs()[job].name);
                self.break_off(format_args!("the output of {name} is incomplete: {why}. No further program begins"));
            }
            if let Err(error) = self.printer.end(job, program.capture) {
                self.break_off(format_args!("the output of a program cannot be read: {error}"));
            }
            let record = Record {
                job,
                attempt,
                at_ms,
                took,
                outcome,
                ended_with_queue,
                again,
                used,
                left_processes,
                folder,
                tier,
                chosen,
                identity,
            };
            let line = self.reporter.note(&self.list.jobs()[job].in_slot(slot), record);
            line.into_iter().for_each(|line| self.printer.add(job, line));
        }
        Ok(())
    }

    /// Prints what programs wrote, as far as there is room.
    fn print_some(&mut self) {
        self.printer.see(&self.queue);
        loop {
            let printed = self.printer.print_some(&self.running, &self.reporter.live, self.is_alone);
            self.revoke_lost();
            match printed {
                Ok(()) => return,
                // Nobody reads any more, as with `| head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.stop_unread(),
                Err(_) if self.is_broken => {}
                Err(error) => {
                    let then = match self.journal {
                        Some(_) => "--resume runs programs again whose output was not printed",
                        None => "what is not printed is lost; --output DIR would keep it",
                    };
                    self.break_off(format_args!("the output of programs cannot be printed: {error}; {then}"));
                }
            }
        }
    }

    /// Begins no further program, because nobody reads the output of programs any more, and says so if that leaves some.
    fn stop_unread(&mut self) {
        if self.is_unfinished() && self.stops == 0 && !replace(&mut self.is_unread, true) {
            let why = "nobody reads standard output any more, so no further program begins";
            self.reporter.live.aside(|| tell(why));
        }
        self.queue.stop();
    }

    /// Writes to the journal that programs whose output was lost begin again: what nobody has seen is not done.
    fn revoke_lost(&mut self) {
        let lost = self.printer.take_lost().into_iter().filter(|job| !self.running.contains_key(job));
        let again = lost.map(|job| {
            let key = self.list.key(job).to_owned();
            Entry::Start { key, attempt: self.queue.attempts(job), at_ms: now_ms() }
        });
        let again: Vec<Entry> = again.collect();
        self.write(&again);
    }

    fn end_of(&self, job: usize, outcome: Outcome) -> Entry {
        Entry::End { key: self.list.key(job).to_owned(), outcome, at_ms: now_ms() }
    }

    /// Writes to the journal. If that fails, no further program begins.
    fn write(&mut self, entries: &[Entry]) {
        let Some(journal) = self.journal.filter(|_| !entries.is_empty()) else { return };
        match journal.append(entries) {
            Ok(()) if entries.iter().any(|entry| matches!(entry, Entry::End { .. })) => {
                self.unsynced_since.get_or_insert_with(Instant::now);
            }
            Ok(()) => {}
            Err(error) => self.without_journal(journal, &error),
        }
    }

    /// Waits until all ends that were written are on the disk.
    fn sync(&mut self) {
        if self.unsynced_since.take().is_some()
            && let Some(journal) = self.journal
            && let Err(error) = journal.sync()
        {
            self.without_journal(journal, &error);
        }
    }

    fn without_journal(&mut self, journal: &Journal, error: &io::Error) {
        self.journal = None;
        let path = printable(&journal.path().display().to_string());
        self.break_off(format_args!(
            "the journal {path} cannot be written: {error}. No further program begins; what ends from now on will run again"
        ));
    }

    fn break_off(&mut self, why: std::fmt::Arguments<'_>) {
        self.reporter.live.aside(|| tell(why));
        self.is_broken = true;
        self.queue.stop();
    }

    fn tell_guard(&mut self, job: usize) {
        // If the guard has died, the signals say so.
        let _ = self.link.tell.write_all(format!("end {job}\n").as_bytes());
    }

    fn take_signal(&mut self) -> io::Result<()> {
        let mut signals = [0; 16];
        let count = self.link.signals.read(&mut signals)?;
        if count == 0 {
            self.watch.remove(&self.link.signals)?;
            self.is_alone = true;
            self.break_off(format_args!("the watchdog died, so the programs are ended"));
            self.end_programs();
        }
        for signal in &signals[..count] {
            self.stops += 1;
            if i32::from(*signal) == Signal::QUIT.as_raw() {
                self.stops = self.stops.max(3);
            }
            self.queue.stop();
            let running = self.running.len();
            match self.stops {
                1 if running > 0 && !self.reporter.quiet => self.reporter.live.aside(|| {
                    tell(format_args!("no further program begins; {running} still run. Once more ends them"));
                }),
                1 => {}
                2 => self.running.values_mut().for_each(|program| program.ask_to_end(Ending::Asked)),
                _ => {
                    self.end_programs();
                    self.printer.clear();
                    self.revoke_lost();
                }
            }
        }
        Ok(())
    }

    /// Ends what programs left running.
    fn sweep(&mut self) {
        let running = &self.running;
        self.remains.sweep(|pid| running.values().any(|program| program.started.pid == pid));
    }

    /// Kills all programs; their ends are seen later.
    pub fn end_programs(&mut self) {
        self.queue.stop();
        self.running.values_mut().for_each(|program| program.kill());
    }

    /// Ends everything at once, after a failure of the queue itself.
    pub fn end_all(&mut self) {
        self.end_programs();
        let _ = end_descendants();
    }
}
