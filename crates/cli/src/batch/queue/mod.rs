//! The queue: runs programs, keeps their output apart, and survives its own death.
//!
//! ```text
//!  slots      a number of programs, or a share of the processors
//!  values     the values of a command
//!  list       the jobs of a file, of the command line, or of standard input
//!  paths      the files that the options name: all different ones
//!  journal    the file with what has ended
//!  ready      what the runner waits for
//!  stream     a pipe that a program writes to, and the file that keeps it
//!  capture    the streams of a program, and the folders of --output
//!  handed     the streams that the guard would finish
//!  heartbeat  the stages that a program tells
//!  identity   the names of programs and inputs in the history
//!  program    one running program
//!  guard      the watchdog: a second process that cleans up if the first one dies
//!  admission  limits for starting: the load and the free memory
//!  record     the report on an attempt: its status, and a line of JSON
//!  memory     the amounts of memory that jobs name, and their limits
//!  tally      how the jobs came out, once the queue is over: the summary
//!  log        a table of all attempts
//!  recorder   writes runs to the history
//!  live       the table on a terminal
//!  timeline   a page with a bar for each program
//!  remains    what programs left running when they ended
//!  tagged     the lines of a program, for --live
//!  written    text that is being printed
//!  printer    prints the output of programs, in the order of --order
//!  reporter   reports on the programs, with record, recorder and live
//!  runner     begins programs and sees them end
//!  dry        the line that stands for a job with --dry-run
//!  choice     whether programs are chosen, or only observed
//!  counts     what the processor counts of a program
//!  probing    readings of memory beside programs, where the processor counts nothing
//!  addresses  sampled instructions, by the file that they belong to
//!  machine    this machine, as the scheduling policy sees it
//! ```

mod slots;
mod values;
mod list;
mod paths;
mod journal;
mod ready;
mod stream;
mod capture;
mod handed;
mod heartbeat;
mod identity;
mod program;
mod guard;
mod admission;
mod record;
mod memory;
mod tally;
mod log;
mod recorder;
mod live;
mod timeline;
mod remains;
mod tagged;
mod written;
mod printer;
mod reporter;
mod runner;
mod dry;
mod choice;
mod counts;
mod probing;
mod addresses;
mod machine;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use gristmill::{Error, units};
use gristmill_os::folder::Folder;
use gristmill_os::machine::{memory_available_bytes, processors};
use gristmill_os::program::{Freezer, MemoryLimits, raise_file_limit};
use gristmill_os::samples::Sampler;
use gristmill_queue::{Halt, Past, Rules, State};
use gristmill_schedule::Limits;

use self::log::Log;
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::standard_output::print;
use admission::Admission;
use choice::{ByBandwidth, nothing_to_choose};
use counts::Counters;
use journal::Journal;
use list::{Defaults, List};
use printer::{Order, Style, UNPRINTED_MAX};
use probing::Probing;
use reporter::Reports;
use runner::{Before, Runner};
use slots::{Slots, slots};
use values::Values;

/// The options of the queue.
#[derive(Args)]
pub struct Programs {
    /// File with a command for the shell (sh, or --shell) in each line, or with jobs in TOML if its name ends with .toml; - for standard input, which is read if
    /// nothing is named
    #[arg(value_name = "FILE", conflicts_with = "command")]
    jobs: Option<PathBuf>,

    /// A command, and values for its placeholders, as in GNU parallel: COMMAND {} ::: a b runs it for each value; without :::, values come from standard input
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    values: Values,

    /// How many programs run at the same time: a number, or a share of the processors such as 200% [default: 100%]
    #[arg(long = "jobs", short = 'j', value_name = "N", value_parser = slots)]
    at_once: Option<Slots>,

    /// With more programs than processors, learn their demand for memory bandwidth, and choose every 100 ms which of them run where that
    /// gained time before
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "observe")]
    by_bandwidth: Option<ByBandwidth>,

    /// Go on after a program has failed; those that wait for it are skipped
    #[arg(long, short, conflicts_with = "halt")]
    keep_going: bool,

    /// After a failure begin no further program (soon), end those that run as well (now), or go on (never); soon,fail=N or
    /// now,success=N count ends [default: soon]
    #[arg(long, value_name = "WHEN", value_parser = Halt::parse)]
    halt: Option<Halt>,

    /// Print the commands that would run, as lines for a shell, and run none
    #[arg(long)]
    dry_run: bool,

    /// Keep what has ended in this file, so that --resume can continue
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Continue after the journal: what has ended does not run again
    #[arg(long, requires = "journal")]
    resume: bool,

    /// Continue, and run again what failed
    #[arg(long, requires = "journal")]
    resume_failed: bool,

    /// Write the output of each program into a folder of its own below this one
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The order in which the output of programs is printed
    #[arg(long, value_enum, default_value_t)]
    order: Order,

    /// The same as --order list
    #[arg(long, conflicts_with = "order")]
    keep_order: bool,

    /// Print each line as soon as it is written, after the number and the name of its job
    #[arg(long, visible_alias = "line-buffer")]
    live: bool,

    /// End a program that takes longer, unless its job says otherwise
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,

    /// How often a program that failed is tried again, unless its job says otherwise
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,

    /// How long to wait before a program that failed is tried again, unless its job says otherwise
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    retry_delay: Option<Duration>,

    /// Memory for all programs that run at the same time [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<usize>,

    #[command(flatten)]
    limits: admission::StartLimits,

    /// Print a line of JSON for each program that ends, instead of its output, which goes to standard error
    #[arg(long)]
    json: bool,

    /// Write a page that shows when each program ran
    #[arg(long, value_name = "FILE.html")]
    timeline: Option<PathBuf>,

    /// Write a line for each attempt that ends into a table
    #[arg(long, value_name = "FILE.tsv")]
    log: Option<PathBuf>,

    /// The history of runs [default: gristmill/history.sqlite in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE", conflicts_with = "no_history")]
    history: Option<PathBuf>,

    /// Keep no history
    #[arg(long)]
    no_history: bool,

    /// Print no table and no summary, only what failed
    #[arg(long, short)]
    quiet: bool,
}

pub const EXAMPLES: &str = "\
Examples:
  gristmill batch jobs.txt
  gristmill batch -- xz -k ::: *.log
  gristmill batch -- cp {} {.}.bak ::: *.txt
  find . -name '*.wav' -print0 | gristmill batch -0 -- flac {}
  gristmill batch --shell 'bash -o pipefail' -- 'zcat {} | wc -l > {.}.count' ::: *.gz
  gristmill batch --journal night.journal --keep-going --output results night.toml
  gristmill batch --journal night.journal --resume --keep-going --output results night.toml

Ctrl-C once begins no further program, twice ends all. Exit status 1 if a program failed or did not run.";

impl Programs {
    pub fn run(&self) -> Result<(), Failure> {
        self.limits.check()?;
        let defaults = Defaults { timeout: self.timeout, retries: self.retries, retry_delay: self.retry_delay };
        let list = List::open(self.jobs.as_deref(), &self.command, &self.values, defaults)?;
        // Those that arrive later say nothing of it.
        if self.retry_delay.is_some() && self.retries == 0 && list.jobs().iter().all(|job| job.retries == Some(0)) {
            return Err(Failure::Usage(
                "--retry-delay has nothing to delay: no job is tried again; add --retries N".to_owned(),
            ));
        }
        memory::check(list.jobs(), self.memory)?;
        let history = self.history.clone().or_else(in_home).filter(|_| !self.no_history);
        self.check_paths(history.as_deref())?;
        let system = |what: &'static str| move |source| Failure::Job(Error::System { what, source });
        // 1. What has ended before.
        let (journal, past) = match &self.journal {
            Some(path) if self.dry_run => (None, journal::past(path)?),
            Some(path) => {
                let (journal, past) = Journal::open(path, self.resume || self.resume_failed)?;
                (Some(journal), past)
            }
            None => (None, Past::default()),
        };
        let before = Before { past, retries_failed: self.resume_failed };
        let processors = processors().usable;
        let available_bytes = memory_available_bytes().map_err(system("asking for the available memory"))?;
        // While a list arrives, nobody knows its length.
        let length = if list.file().is_none() { list.jobs().len().max(1) } else { usize::MAX };
        let wanted = self.at_once.unwrap_or(Slots::Percent(100)).of(processors).min(length);
        let (slots_max, held_max) = by_files(wanted, self.by_bandwidth.is_some(), processors);
        let slots = wanted.min(slots_max);
        if slots < wanted && !self.quiet {
            tell(format_args!(
                "at most {slots} at the same time, not {wanted}: for more, this process may open too few files (ulimit -n)"
            ));
        }
        let rules = Rules {
            slots,
            memory_bytes: self.memory.map_or(available_bytes, |bytes| bytes as u64),
            halt: if self.keep_going { Halt::NEVER } else { self.halt.unwrap_or(Halt::SOON) },
        };
        if self.dry_run {
            return dry_run(list, &before, rules);
        }
        let queue = before.queue(&list, rules);
        // 2. What cannot be written fails at once, not after hours.
        self.timeline.as_deref().map(timeline::check).transpose()?;
        if let Some(output) = &self.output {
            Folder::make(output).map_err(|source| Failure::output(output, source))?;
        }
        let log = self.log.as_deref().map(Log::open).transpose()?.map(Rc::new);
        // 3. Two processes from here on: the guard, and the one that runs the programs.
        let freezer = Freezer::here("gristmill");
        let limits = memory::limits(list.jobs(), &freezer, self.quiet);
        let alone = memory::alone(list.jobs(), queue.states(), rules.memory_bytes, self.memory.is_some());
        alone.filter(|_| !self.quiet).into_iter().for_each(tell);
        let reports = Reports {
            output: self.output.clone(),
            style: Style {
                order: if self.keep_order { Order::List } else { self.order },
                is_live: self.live,
                is_aside: self.json,
                held_max,
            },
            history,
            log,
            json: self.json,
            quiet: self.quiet,
        };
        let admission = Admission::new(self.limits, processors);
        let plan = guard::Plan { journal: journal.as_ref(), freezer: &freezer };
        let code = guard::guarded(&plan, |link| {
            let begin = (before, queue, admission);
            let mut runner = match Runner::new(&reports, list, begin, journal.as_ref(), &freezer, link) {
                Ok(runner) => runner,
                Err(source) => {
                    tell(format_args!("preparing to run programs: {source}"));
                    return 1;
                }
            };
            runner.limit_memory(limits.as_ref());
            // With a processor for each program there is nothing to choose.
            let slots = rules.slots.min(length);
            let how = self.by_bandwidth.filter(|_| slots > processors);
            let chooses = how.is_some();
            if self.by_bandwidth.is_some() && !chooses && !self.quiet {
                tell(nothing_to_choose(length, slots, self.at_once.is_some(), processors));
            }
            let is_short = chooses && runner.is_short(processors, WORTH_CHOOSING_S);
            if is_short && !self.quiet {
                tell(format_args!(
                    "this list usually takes less than {WORTH_CHOOSING_S} s, which choosing them would hardly shorten, so the system shares the processors out"
                ));
            }
            let means = how.filter(|_| !is_short).map(|how| (how, self.means(how, slots, processors)));
            runner.reporter().set_tier(means.as_ref().map(|(_, (means, _))| means.tier()));
            let worked = match means {
                Some((how, (Means::Counted(counters, limits), sampler))) => {
                    machine::run_counted(&mut runner, counters, sampler, limits, how)
                }
                Some((how, (Means::Probed(probing, limits), sampler))) => {
                    machine::run_probed(&mut runner, probing, sampler, limits, how)
                }
                Some((_, (Means::Nothing, _))) | None => runner.run(),
            };
            if let Err(source) = worked {
                tell(format_args!("running the programs: {source}"));
                runner.end_all();
                return 1;
            }
            let written = self.timeline.as_ref().map_or(Ok(()), |path| {
                timeline::write(path, &timeline::html(runner.jobs(), runner.records())).map_err(tell)
            });
            // The guard does this too, unless it has died.
            limits.iter().for_each(MemoryLimits::remove);
            freezer.remove();
            runner.report().max(i32::from(written.is_err()))
        });
        limits.iter().for_each(MemoryLimits::remove);
        freezer.remove();
        match code.map_err(system("running the programs"))? {
            0 => Ok(()),
            _ => Err(Failure::Told),
        }
    }
}

impl Programs {
    fn check_paths(&self, history: Option<&Path>) -> Result<(), Failure> {
        let list = self.jobs.as_deref().filter(|path| path.as_os_str() != "-").unwrap_or(Path::new("/dev/stdin"));
        let lists = if self.command.is_empty() { vec![list.to_owned()] } else { self.values.files(&self.command) };
        let written = [
            ("--journal", self.journal.as_deref()),
            ("--timeline", self.timeline.as_deref()),
            ("--output", self.output.as_deref()),
            ("--history", history),
            ("--log", self.log.as_deref()),
        ];
        paths::check_apart(&lists, written)
    }
}

/// The seconds of a list from which it is worth to choose its programs. It takes half a second to see that there is contention, and the last second is left to the system.
const WORTH_CHOOSING_S: f64 = 5.0;

/// The means to learn what programs demand.
enum Means {
    Counted(Counters, Limits),
    Probed(Probing, Limits),
    Nothing,
}

impl Means {
    /// The tier, as it is said at the start and in each record.
    fn tier(&self) -> &'static str {
        match self {
            Means::Counted(..) => "A",
            Means::Probed(..) => "B",
            Means::Nothing => "C",
        }
    }
}

impl Programs {
    /// Returns the best means of this machine, with what samples instructions, and says which it is and why.
    fn means(&self, how: ByBandwidth, slots: usize, processors: usize) -> (Means, Option<Sampler>) {
        let (means, sentence) = match machine::tier_a(processors) {
            Ok((counters, limits)) => {
                let from = format!("by their demand for memory bandwidth, from counts of {}", counters.of_what());
                (Means::Counted(counters, limits), how.sentence(&from, processors))
            }
            Err(no_counts) => match machine::tier_b(processors) {
                Ok((probing, limits)) => {
                    let sentence = how.sentence("by how much they slow down work on memory", processors);
                    (Means::Probed(probing, limits), format!("{no_counts}; {sentence}"))
                }
                Err(no_probe) => (
                    Means::Nothing,
                    format!(
                        "{no_counts}, and {no_probe}, so the system shares the processors out among {slots} programs"
                    ),
                ),
            },
        };
        let sampler = if matches!(means, Means::Nothing) { None } else { Some(machine::sampler()) };
        let sentence = match &sampler {
            Some(Err(error)) => format!(
                "{sentence}. Instructions are not sampled ({error}), so a program that tells no stages counts as a single phase"
            ),
            _ => sentence,
        };
        let sentence = match how {
            ByBandwidth::Observe if self.no_history && !matches!(means, Means::Nothing) => format!(
                "{sentence}. With --no-history nothing of this is kept for later runs; --by-bandwidth=choose chooses at once"
            ),
            _ => sentence,
        };
        if !self.quiet {
            tell(format_args!("tier {}: {sentence}", means.tier()));
        }
        (means, sampler.and_then(Result::ok))
    }
}

/// Returns how many programs may run at the same time by the number of files that this process may open, and the outputs that may wait for an earlier job's if this
/// many are wanted.
fn by_files(wanted: usize, observed: bool, processors: usize) -> (usize, usize) {
    // Those of the queue itself, of a program that begins, and of outputs that are being printed.
    const OWN: u64 = 64 + UNPRINTED_MAX as u64;
    // Two pipes and two files for its output, and one for its end; its clocks, what it tells of stages, and its samples on each processor.
    let each = if observed { 10 + processors as u64 } else { 5 };
    let files = raise_file_limit().saturating_sub(OWN);
    let slots = (files / each).max(1);
    // An output has two files.
    let held = files.saturating_sub(slots.min(wanted as u64) * each) / 2;
    (slots as usize, held.max(UNPRINTED_MAX as u64) as usize)
}

/// Prints what would run, as it arrives.
fn dry_run(mut list: List, before: &Before, rules: Rules) -> Result<(), Failure> {
    let mut queue = before.queue(&list, rules);
    let mut from = 0;
    loop {
        for (job, state) in list.jobs().iter().zip(queue.states()).skip(from) {
            if *state == State::Waiting {
                print(dry::line(job, list.jobs(), list.folder()))?;
            }
        }
        from = list.jobs().len();
        if list.file().is_none() {
            return Ok(());
        }
        list.take_in()?;
        before.add(&list, from, &mut queue);
    }
}
