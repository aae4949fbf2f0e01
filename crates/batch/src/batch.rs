//! Runs the list of a request: from what has ended before to the summary.
//!
//! 1. Read the journal.
//! 2. Make the files of the reports: what cannot be written fails at once, not after hours.
//! 3. Part into two processes: the guard, and the scheduler, which runs the programs.

use gristmill::Error;
use gristmill_os::folder::Folder;
use gristmill_os::machine::{memory_available_bytes, processors};
use gristmill_os::program::{Freezer, MemoryLimits, raise_file_limit};
use gristmill_os::standard::print;
use gristmill_report::messages::tell;

use crate::choose::means::{Chooser, run_chosen};
use crate::journal_file::{Journal, past};
use crate::list::{List, dry};
use crate::queue::{Past, Rules, State};
use crate::report::log::Log;
use crate::report::printer::{Style, UNPRINTED_MAX};
use crate::report::reporter::Reports;
use crate::report::timeline;
use crate::request::Request;
use crate::run::admission::Admission;
use crate::run::before::Before;
use crate::run::guard::{Watched, guarded};
use crate::run::memory;
use crate::run::runner::Runner;
use crate::run::slots::Slots;

/// Runs the programs of a list, and prints what they print.
///
/// Returns false if a program failed or did not run; the reason was printed. A signal ends this process.
///
/// # Errors
/// [`Error::Setting`] if the request makes no sense. Otherwise a file cannot be read or written, or the system refuses.
pub fn run(request: &Request) -> Result<bool, Error> {
    request.limits.check()?;
    let list = request.list()?;
    memory::check(list.jobs(), request.memory_bytes)?;
    let (journal, past) = journal(request)?;
    let before = Before { past, retries_failed: request.resume_failed };
    let room = Room::of(request, &list)?;
    if request.dry_run {
        return dry_run(list, &before, room.rules);
    }
    let queue = before.queue(&list, room.rules);
    let log = report_files(request)?;
    let freezer = Freezer::here("gristmill");
    let limits = memory::limits(list.jobs(), &freezer, request.quiet);
    let alone = memory::alone(list.jobs(), queue.states(), room.rules.memory_bytes, request.memory_bytes.is_some());
    alone.filter(|_| !request.quiet).into_iter().for_each(tell);
    let reports = Reports {
        output: request.output.clone(),
        style: Style { order: request.order, is_live: request.live, is_aside: request.json, held_max: room.held_max },
        history: request.history.clone().filter(|_| !request.no_history),
        log,
        json: request.json,
        quiet: request.quiet,
    };
    let admission = Admission::new(request.limits, room.processors);
    let code = guarded(&Watched { journal: journal.as_ref(), freezer: &freezer }, |link| {
        let begin = (before, queue, admission);
        let mut runner = match Runner::new(reports, list, begin, journal.as_ref(), &freezer, link) {
            Ok(runner) => runner,
            Err(source) => {
                tell(format_args!("preparing to run programs: {source}"));
                return 1;
            }
        };
        runner.limit_memory(limits.as_ref());
        if let Err(source) = run_chosen(&mut runner, &room.chooser(request)) {
            tell(format_args!("running the programs: {source}"));
            runner.end_all();
            return 1;
        }
        let written = request.timeline.as_ref().map_or(Ok(()), |path| {
            timeline::write(path, &timeline::html(runner.jobs(), runner.records())).map_err(tell)
        });
        // The guard does this too, unless it has died.
        limits.iter().for_each(MemoryLimits::remove);
        freezer.remove();
        runner.report().max(i32::from(written.is_err()))
    });
    limits.iter().for_each(MemoryLimits::remove);
    freezer.remove();
    code.map(|code| code == 0).map_err(|source| Error::System { what: "running the programs", source })
}

/// Opens the journal, or only reads it before a dry run.
fn journal(request: &Request) -> Result<(Option<Journal>, Past), Error> {
    match &request.journal {
        Some(path) if request.dry_run => Ok((None, past(path)?)),
        Some(path) => {
            let (journal, past) = Journal::open(path, request.resume || request.resume_failed)?;
            Ok((Some(journal), past))
        }
        None => Ok((None, Past::default())),
    }
}

/// Makes what the reports need, and opens the log.
fn report_files(request: &Request) -> Result<Option<Log>, Error> {
    request.timeline.as_deref().map(timeline::check).transpose()?;
    if let Some(output) = &request.output {
        Folder::make(output).map_err(|source| Error::Output { path: output.clone(), source })?;
    }
    request.log.as_deref().map(Log::open).transpose()
}

/// The room for programs on this machine.
struct Room {
    processors: usize,
    /// The jobs of the list; unlimited while it arrives, when nobody knows their number.
    length: usize,
    rules: Rules,
    /// The outputs that may wait for an earlier job's.
    held_max: usize,
}

impl Room {
    fn of(request: &Request, list: &List) -> Result<Room, Error> {
        let processors = processors().usable;
        let available_bytes = memory_available_bytes()
            .map_err(|source| Error::System { what: "asking for the available memory", source })?;
        let length = if list.file().is_none() { list.jobs().len().max(1) } else { usize::MAX };
        let wanted = request.at_once.unwrap_or(Slots::Percent(100)).of(processors).min(length);
        let (slots_max, held_max) = by_files(wanted, request.by_bandwidth.is_some(), processors);
        let slots = wanted.min(slots_max);
        if slots < wanted && !request.quiet {
            tell(format_args!(
                "at most {slots} at the same time, not {wanted}: for more, this process may open too few files (ulimit -n)"
            ));
        }
        let rules = Rules {
            slots,
            memory_bytes: request.memory_bytes.map_or(available_bytes, |bytes| bytes as u64),
            halt: request.halt,
        };
        Ok(Room { processors, length, rules, held_max })
    }

    fn chooser(&self, request: &Request) -> Chooser {
        Chooser {
            how: request.by_bandwidth,
            processors: self.processors,
            length: self.length,
            slots: self.rules.slots.min(self.length),
            is_jobs_given: request.at_once.is_some(),
            no_history: request.no_history,
            quiet: request.quiet,
        }
    }
}

/// Returns how many programs may run at the same time by the number of files that this process may open, and the
/// outputs that may wait for an earlier job's if this many are wanted.
fn by_files(wanted: usize, observed: bool, processors: usize) -> (usize, usize) {
    // Those of the queue itself, of a program that begins, and of outputs that are being printed.
    const OWN: u64 = 64 + UNPRINTED_MAX as u64;
    // Two pipes and two files for its output, and one for its end; its clocks, what it tells of stages, and its
    // samples on each processor.
    let each = if observed { 10 + processors as u64 } else { 5 };
    let files = raise_file_limit().saturating_sub(OWN);
    let slots = (files / each).max(1);
    // An output has two files.
    let held = files.saturating_sub(slots.min(wanted as u64) * each) / 2;
    (slots as usize, held.max(UNPRINTED_MAX as u64) as usize)
}

/// Prints what would run, as it arrives.
fn dry_run(mut list: List, before: &Before, rules: Rules) -> Result<bool, Error> {
    let mut queue = before.queue(&list, rules);
    let mut from = 0;
    loop {
        for (job, state) in list.jobs().iter().zip(queue.states()).skip(from) {
            if *state == State::Waiting {
                let line = dry::line(job, list.jobs(), list.folder());
                print(&[line.as_bytes(), b"\n"].concat())
                    .map_err(|source| Error::Output { path: "standard output".into(), source })?;
            }
        }
        from = list.jobs().len();
        if list.file().is_none() {
            return Ok(true);
        }
        list.take_in()?;
        before.add(&list, from, &mut queue);
    }
}
