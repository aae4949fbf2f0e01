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

use clap::Args;
use gristmill::Error;
use gristmill_scale::{Report, Request};

use crate::output::aside::{WholeFile, write_whole};
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
    #[command(flatten)]
    request: Request,

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

/// The limit on the input of --from.
const TABLE_BYTES_MAX: u64 = 16 << 20;

impl Scale {
    pub fn run(mut self) -> Result<(), Failure> {
        // Minutes of measurements would be lost if the page could not be written.
        if let Some(path) = &self.output {
            WholeFile::begin(path)?;
        }
        let report = match &self.from {
            Some(path) => analyse(path, self.processors)?,
            None => {
                let request = &mut self.request;
                request.is_application = !is_behind_dashes(&request.program, std::env::args_os());
                request.history = in_home().filter(|_| !self.no_history);
                match gristmill_scale::measure(request, &known::APPLICATIONS)? {
                    Some(report) => report,
                    None => return Ok(()),
                }
            }
        };
        if let Some(path) = &self.output {
            write_whole(path, &report.html())?;
            tell(format_args!("the report is in {}", path.display()));
        }
        print(if self.json { report.json() } else { report.text() })?;
        if !report.has_failures() || self.keep_going {
            return Ok(());
        }
        tell("the command failed in some of the runs, which the report names; --keep-going makes this no error");
        Err(Failure::Told)
    }
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
