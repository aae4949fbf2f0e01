//! The options of a queue, as a request to run it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gristmill::units;
use gristmill_batch::{Halt, Request, Shell, Slots};

use crate::output::outputs::Outputs;
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;

/// The options of the queue.
#[derive(Args)]
pub struct Programs {
    /// File with a command for the shell (sh, or --shell) in each line, or with jobs in TOML if its name ends with
    /// .toml; - for standard input, which is read if nothing is named
    #[arg(value_name = "FILE", conflicts_with = "command")]
    jobs: Option<PathBuf>,

    /// A command, and values for its placeholders, as in GNU parallel: COMMAND {} ::: a b runs it for each value;
    /// without :::, values come from standard input
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    values: Values,

    /// How many programs run at the same time: a number, or a share of the processors such as 200% [default: 100%]
    #[arg(long = "jobs", short = 'j', value_name = "N", value_parser = gristmill_batch::slots)]
    at_once: Option<Slots>,

    /// With more programs than processors, learn their demand for memory bandwidth, and choose every 100 ms which of
    /// them run where that gained time before
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "observe")]
    by_bandwidth: Option<ByBandwidth>,

    /// Go on after a program has failed; those that wait for it are skipped
    #[arg(long, short, conflicts_with = "halt")]
    keep_going: bool,

    /// After a failure begin no further program (soon), end those that run as well (now), or go on (never);
    /// soon,fail=N or now,success=N count ends [default: soon]
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
    limits: StartLimits,

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

/// How values and lines become jobs.
#[derive(Args)]
struct Values {
    /// Take values from the lines of this file, - for standard input; may be given several times, as ::: may
    #[arg(long, short, value_name = "FILE")]
    arg_file: Vec<OsString>,

    /// Values, and the commands of a list, end with a zero byte instead of a line end, as find -print0 writes them
    #[arg(long, short = '0')]
    null: bool,

    /// Take N values of each list for one run; 0 takes one, and inserts none
    #[arg(long, short = 'n', value_name = "N")]
    max_args: Option<usize>,

    /// The shell for lines, with its options, such as 'bash -o pipefail' [default: sh]; with it, COMMAND is a line, too
    #[arg(long, value_name = "SHELL", value_parser = Shell::parse)]
    shell: Option<Shell>,
}

/// The limits.
#[derive(Args)]
struct StartLimits {
    /// Begin a further program only while fewer threads than this run or wait for the disk: a number, or a share of
    /// the processors such as 100%; one program always runs
    #[arg(long, value_name = "N", value_parser = gristmill_batch::slots)]
    load: Option<Slots>,

    /// Begin a program only while this much memory is free
    #[arg(long, visible_alias = "memfree", value_name = "SIZE", value_parser = units::bytes)]
    free_memory: Option<usize>,
}

/// The order in which outputs are printed.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Order {
    /// As the jobs end
    #[default]
    End,
    /// In the order of the list
    List,
}

/// How programs are chosen.
#[derive(Clone, Copy, ValueEnum)]
enum ByBandwidth {
    /// Learn what programs demand, and choose them where earlier runs gained by that. In one run of eight it is tried.
    Observe,
    /// Choose them as soon as they are known and slow each other down.
    Choose,
}

impl Programs {
    pub fn run(self) -> Result<(), Failure> {
        let request = self.request();
        check_apart(&request)?;
        if gristmill_batch::run(&request)? { Ok(()) } else { Err(Failure::Told) }
    }

    fn request(self) -> Request {
        Request {
            jobs: self.jobs,
            command: self.command,
            values: gristmill_batch::Values {
                files: self.values.arg_file,
                are_null_ended: self.values.null,
                per_job: self.values.max_args,
                shell: self.values.shell,
            },
            at_once: self.at_once,
            by_bandwidth: self.by_bandwidth.map(|how| match how {
                ByBandwidth::Observe => gristmill_batch::ByBandwidth::Observe,
                ByBandwidth::Choose => gristmill_batch::ByBandwidth::Choose,
            }),
            halt: if self.keep_going { Halt::NEVER } else { self.halt.unwrap_or(Halt::SOON) },
            dry_run: self.dry_run,
            journal: self.journal,
            resume: self.resume,
            resume_failed: self.resume_failed,
            output: self.output,
            order: match self.order {
                Order::End if !self.keep_order => gristmill_batch::Order::End,
                Order::End | Order::List => gristmill_batch::Order::List,
            },
            live: self.live,
            timeout: self.timeout,
            retries: self.retries,
            retry_delay: self.retry_delay,
            memory_bytes: self.memory,
            limits: gristmill_batch::StartLimits { load: self.limits.load, free_bytes: self.limits.free_memory },
            json: self.json,
            timeline: self.timeline,
            log: self.log,
            history: self.history.or_else(in_home),
            no_history: self.no_history,
            quiet: self.quiet,
        }
    }
}

/// Fails if two of the files that the options name are the same, or one of them has the jobs, or values for them.
/// Links are seen through.
fn check_apart(request: &Request) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    let mut add = |option, path: Option<&PathBuf>| path.iter().for_each(|path| outputs.file(option, path));
    add("--journal", request.journal.as_ref());
    add("--timeline", request.timeline.as_ref());
    add("--output", request.output.as_ref());
    add("--history", request.history.as_ref().filter(|_| !request.no_history));
    add("--log", request.log.as_ref());
    outputs.check()?;
    outputs.check_named(request.lists().iter().map(PathBuf::as_path))
}
