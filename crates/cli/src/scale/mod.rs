//! `gristmill scale`: finds where more workers stop helping, for any command.
//!
//! ```text
//!  known  what the options of our own applications mean for this
//! ```

mod known;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use gristmill::{Error, units};
use gristmill_scale::{Parameter, Report, Request};

use crate::output::outputs::Outputs;
use crate::output::side_files::{WholeFile, write_whole};
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::standard_output::print;

/// Find out where more workers stop helping
///
/// Runs one of Gristmill's applications, or any command behind --, with several numbers of workers, in turn, and says
/// how its time follows them: where it falls, where it hardly changes, where it rises, which law describes that, and
/// how sure this is. Standard output of the command is thrown away.
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Scale {
    /// An application of Gristmill with its arguments, but without --workers; or, behind --, any command, in which
    /// {workers} stands for the number of workers
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments, conflicts_with = "from")]
    program: Vec<OsString>,

    /// Numbers of workers, separated by commas [default: 1, 2, 4 and so on to twice the processors]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=4096))]
    workers: Vec<u64>,

    /// Another parameter and its values, for a table with a row for each; {NAME} stands for the value, and one of
    /// Gristmill's applications gets --NAME. May be given several times, for all combinations
    #[arg(long, value_name = "NAME=A,B", value_parser = Parameter::parse, conflicts_with = "from")]
    vary: Vec<Parameter>,

    /// The work grows with the workers: times are divided by their number. One of Gristmill's applications reads its
    /// input as often as there are workers; in a command, {workers*N} is N times the number
    #[arg(long, conflicts_with = "from")]
    weak: bool,

    /// How often the command runs with each number at least, after one run that does not count. There are up to three
    /// times as many while the times lie far apart
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,

    /// End a run that takes longer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10min")]
    timeout: Duration,

    /// Do not run once more with each number to see where the time of the workers goes
    #[arg(long, conflicts_with = "from")]
    no_account: bool,

    /// When the account leaves several causes: run again under changed circumstances, such as half the processors, to
    /// rule some out
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, conflicts_with = "from")]
    experiments: When,

    /// Say what stops the workers even if other programs use the processors, and keep the times; it may be their work
    #[arg(long, conflicts_with = "from")]
    despite_load: bool,

    /// Run this by a shell before each run, such as 'make clean'; it is not timed, and {workers} is replaced in it as
    /// well
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,

    /// Analyse times that were measured elsewhere: a file with a number of workers and seconds in each line, separated
    /// by a comma;
    /// - for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// How many processors the machine of --from had: more workers than these take turns, and are not fitted
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u64).range(1..))]
    processors: Option<u64>,

    /// Do not keep the times of one of Gristmill's applications for the plans of later runs
    #[arg(long)]
    no_history: bool,

    /// Exit with 0 even if the command fails with some numbers of workers
    #[arg(long, short, conflicts_with = "from")]
    keep_going: bool,

    /// Print the times and what they mean as JSON: times in seconds
    #[arg(long)]
    json: bool,

    /// Write the report to this file as well, as a page of HTML
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const USAGE: &str = "\
gristmill scale [OPTIONS] APPLICATION [ARGUMENT]...
       gristmill scale [OPTIONS] -- COMMAND...
       gristmill scale [OPTIONS] --from FILE";

const EXAMPLES: &str = "\
Examples:
  gristmill scale word-count logs
  gristmill scale --vary chunk-bytes=64KiB,1MiB,16MiB word-count logs
  gristmill scale --prepare 'make clean' -- make -j{workers}
  gristmill scale --workers 1,2,4,8 -- sort --parallel={workers} -o /dev/null words.txt
  gristmill scale --output report.html -- env OMP_NUM_THREADS={workers} ./simulate
  gristmill scale --weak --vary size=1000,2000 -- ./simulate --threads {workers} --cells {workers*1000} --side {size}
  gristmill scale --from times.csv

In the report, busy is how many processors the command kept busy, on average. A run that other programs disturbed (more than a tenth of the processors) is repeated. Laws need five numbers of workers up to the
processors; with fewer, the report says what was seen and no more.";

/// When experiments are made.
#[derive(Clone, Copy, ValueEnum)]
enum When {
    /// Those that tell the suspects apart, if they take less than 15 seconds
    Auto,
    /// All, however long they take
    Always,
    /// Never
    Never,
}

/// The limit on the input of --from.
const TABLE_BYTES_MAX: u64 = 16 << 20;

impl Scale {
    pub fn run(self) -> Result<(), Failure> {
        let (output, json, keep_going) = (self.output.clone(), self.json, self.keep_going);
        // Minutes of measurements would be lost if the page could not be written.
        if let Some(path) = &output {
            // A word of the program that is a file may be its input.
            let inputs = self.program.iter().map(Path::new).chain(self.from.as_deref().map(of_standard_input));
            Outputs::begin(Some(path)).check_named(inputs)?;
            WholeFile::begin(path)?;
        }
        let report = match &self.from {
            Some(path) => analyse(path, self.processors)?,
            None => match gristmill_scale::measure(&self.request(), &known::APPLICATIONS)? {
                Some(report) => report,
                None => return Ok(()),
            },
        };
        if let Some(path) = &output {
            write_whole(path, &report.html())?;
            tell(format_args!("the report is in {}", path.display()));
        }
        print(if json { report.json() } else { report.text() })?;
        if !report.has_failures() || keep_going {
            return Ok(());
        }
        tell("the command failed in some of the runs, which the report names; --keep-going makes this no error");
        Err(Failure::Told)
    }

    fn request(self) -> Request {
        Request {
            is_application: !is_behind_dashes(&self.program, std::env::args_os()),
            program: self.program,
            prepare: self.prepare,
            is_weak: self.weak,
            vary: self.vary,
            workers: self.workers,
            repeats: self.repeats,
            timeout: self.timeout,
            account: !self.no_account,
            experiments: match self.experiments {
                When::Auto => gristmill_scale::When::Auto,
                When::Always => gristmill_scale::When::Always,
                When::Never => gristmill_scale::When::Never,
            },
            despite_load: self.despite_load,
            history: in_home().filter(|_| !self.no_history),
        }
    }
}

/// Returns the path of the file that is read.
fn of_standard_input(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path }
}

/// Analyses times measured elsewhere.
fn analyse(path: &Path, processors: Option<u64>) -> Result<Report, Failure> {
    let failed = |source| Failure::Job(Error::Input { path: path.to_owned(), source });
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().take(TABLE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        fs::File::open(path).and_then(|file| file.take(TABLE_BYTES_MAX).read_to_end(&mut bytes)).map_err(failed)?;
    }
    let report = gristmill_scale::analyse(&path.display().to_string(), &String::from_utf8_lossy(&bytes), processors);
    report.map_err(|error| failed(io::Error::other(error.to_string())))
}

/// Returns true if `--` precedes the words on the command line `all`, which they end. The parser drops it.
fn is_behind_dashes(words: &[OsString], all: impl Iterator<Item = OsString>) -> bool {
    let all: Vec<OsString> = all.collect();
    let before = all.len().checked_sub(words.len() + 1);
    before.is_some_and(|before| all[before] == "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sort` is one of our applications, and a command of every system.
    #[test]
    fn two_dashes_tell_any_command_from_our_applications() {
        let is_any = |words: usize, all: &str| {
            let all: Vec<OsString> = all.split(' ').map(OsString::from).collect();
            is_behind_dashes(&all[all.len() - words..], all.iter().cloned())
        };
        assert!(is_any(2, "gristmill scale -- sort --parallel={workers}"));
        assert!(is_any(2, "gristmill scale --workers 1,2 -- sort --parallel={workers}"));
        assert!(!is_any(2, "gristmill scale sort file"));
        assert!(!is_any(3, "gristmill scale sort -- -file"));
        assert!(!is_any(3, "gristmill scale sort --"));
    }
}
