//! `gristmill history`: what is known of programs from their earlier runs.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::Args;
use gristmill::{Error, units};
use gristmill_history::{BYTES_MIN, History as File, Limits, Problem, UNDISTURBED_US};

use crate::output::side_files::write_whole;
use crate::report::gain;
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;
use crate::terminal::messages::{printable, tell};
use crate::terminal::standard_output::print;
use gristmill_report::text::counted;

/// List, explain, export or forget what is known of programs
///
/// gristmill scale keeps the times of Gristmill's applications with several numbers of workers, for the plans of later
/// runs. gristmill batch keeps the times, the memory and the outcome of each program that it ran. Programs are known by
/// their file, inputs by a digest of arguments and file sizes; the arguments themselves are not kept.
///
/// Removes what exceeds the limits whenever runs are added. The limits are kept in the file, and hold for all that
/// write to it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct History {
    /// Only this program, by its name or build
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,

    /// Print each run as a line of JSON
    #[arg(long)]
    export: bool,

    /// Write a page that shows what choosing programs gained, run by run
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["export", "forget"])]
    gain: Option<PathBuf>,

    /// Remove the program and all its runs
    #[arg(long, requires = "program", conflicts_with = "export")]
    forget: bool,

    /// From now on, keep the last N runs of each program with the same input [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["program", "export", "gain"])]
    keep_runs: Option<u64>,

    /// From now on, keep runs for this number of days [default: 365]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["program", "export", "gain"])]
    keep_days: Option<u64>,

    /// From now on, let the file hold this much, 1MiB at least; the oldest runs go first [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["program", "export", "gain"])]
    keep_size: Option<u64>,

    /// The file [default: gristmill/history.sqlite in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  gristmill history
  gristmill history xz
  gristmill history --export > runs.jsonl
  gristmill history --gain gain.html
  gristmill history xz --forget
  gristmill history --keep-days 30";

/// Parses the size of the file.
fn size(text: &str) -> Result<u64, String> {
    match units::bytes(text)? as u64 {
        bytes if bytes < BYTES_MIN => Err("a history needs 1MiB at least".to_owned()),
        bytes => Ok(bytes),
    }
}

impl History {
    pub fn run(&self) -> Result<(), Failure> {
        let path = self.history.clone().or_else(in_home);
        let path =
            path.ok_or_else(|| Failure::Usage("there is no home folder; name a file with --history".to_owned()))?;
        let exists = path.try_exists().map_err(|source| Error::Input { path: path.clone(), source });
        if !exists.map_err(Failure::Job)? {
            tell(format_args!("there is no history yet ({})", path.display()));
            return Ok(());
        }
        self.answer(&path).map_err(|problem| {
            Failure::Job(Error::Input { path, source: std::io::Error::other(problem.to_string()) })
        })?
    }

    fn answer(&self, path: &Path) -> Result<Result<(), Failure>, Problem> {
        let program = self.program.as_deref();
        if self.keep_runs.or(self.keep_days).or(self.keep_size).is_some() {
            return self.keep(&mut File::open(path)?).map(Ok);
        }
        if let Some(program) = program.filter(|_| self.forget) {
            match File::open(path)?.forget(program)? {
                0 => tell(format_args!("nothing is known of {}", printable(program))),
                count => tell(format_args!("forgot {}", counted(count as u64, "program"))),
            }
            return Ok(Ok(()));
        }
        let file = File::read(path)?;
        if let Some(page) = &self.gain {
            let all = file.repeated(program)?;
            if let Some(why) = gain::nothing(&all, file.quanta()?) {
                tell(why);
                return Ok(Ok(()));
            }
            return Ok(write_whole(page, &gain::html(&all)));
        }
        let lines: Vec<String> = match self.export {
            true => file.export(program)?.into_iter().map(|run| run.to_string()).collect(),
            false => self.accounts(&file)?,
        };
        match program {
            Some(program) if lines.is_empty() => tell(format_args!("nothing is known of {}", printable(program))),
            None if lines.is_empty() => tell(format_args!("there is nothing in the history yet ({})", path.display())),
            _ => {}
        }
        Ok(lines.iter().try_for_each(print))
    }

    /// Sets limits of what is kept, and says what they are and what they removed.
    fn keep(&self, file: &mut File) -> Result<(), Problem> {
        let before = file.limits()?;
        let limits = Limits {
            runs: self.keep_runs.unwrap_or(before.runs),
            days: self.keep_days.unwrap_or(before.days),
            bytes: self.keep_size.unwrap_or(before.bytes),
        };
        let now_ms = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64;
        let removed = file.set_limits(limits, now_ms)?;
        tell(format_args!(
            "of each program and input, the last {} of {} are kept, and {:.1} MB in all; {} removed, {:.1} MB are left",
            counted(limits.runs, "run"),
            counted(limits.days, "day"),
            limits.bytes as f64 / 1e6,
            match removed {
                1 => "1 run was".to_owned(),
                count => format!("{count} runs were"),
            },
            file.bytes()? as f64 / 1e6
        ));
        Ok(())
    }

    /// Returns a line for each program. One that was asked for is also explained: what is known of its demand on each
    /// host.
    fn accounts(&self, file: &File) -> Result<Vec<String>, Problem> {
        let mut lines = Vec::new();
        for account in file.accounts(self.program.as_deref())? {
            lines.push(format!("{}: {}", printable(&account.build), account.sentence()));
            if self.program.is_some() {
                let demands = file.demands(&account.build)?;
                lines.extend(demands.iter().map(|on| format!("  {}: {}", printable(&on.host), on.sentence())));
                let times = file.measured_sentences(&account.build)?;
                lines.extend(times.iter().map(|sentence| format!("  {}", printable(sentence))));
                for (host, times) in file.times(&account.build)? {
                    let [usual, chosen] = [times.usual, times.chosen].map(|[us, runs]| match runs {
                        1.0 => format!("{:.2} s (1 run)", us / 1e6),
                        runs => format!("{:.2} s ({runs} runs)", us / 1e6),
                    });
                    lines.push(format!(
                        "  {}: {usual} of processor time in the system's order, {chosen} when chosen",
                        printable(&host)
                    ));
                }
                for on in &demands {
                    let reading = file.ceiling(&on.host, UNDISTURBED_US)?;
                    lines.extend(reading.map(|reading| {
                        format!(
                            "  {}: undisturbed, a reading of the memory takes {:.1} us",
                            printable(&on.host),
                            reading.value
                        )
                    }));
                }
            }
        }
        Ok(lines)
    }
}
