//! `gristmill history`: what is known of programs from their earlier runs.

use std::path::{Path, PathBuf};

use clap::Args;
use gristmill::Error;
use gristmill_history::{Account, History as File, Problem, UNDISTURBED_US};

use crate::output::aside::write_whole;
use crate::report::gain;
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;
use crate::terminal::messages::{printable, tell};
use crate::terminal::standard_output::print;

/// List, explain, export or forget what is known of programs
///
/// gristmill scale keeps the times of Gristmill's applications with several numbers of workers, for the plans of later runs.
/// gristmill batch keeps the times, the memory and the outcome of each program that it ran. Programs are known by their file, inputs by a
/// digest of arguments and file sizes; the arguments themselves are not kept.
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
  gristmill history xz --forget";

impl History {
    pub fn run(&self) -> Result<(), Failure> {
        let path = self.history.clone().or_else(in_home);
        let path =
            path.ok_or_else(|| Failure::Usage("there is no home folder; name a file with --history".to_owned()))?;
        if !path.exists() {
            tell(format_args!("there is no history yet ({})", path.display()));
            return Ok(());
        }
        self.answer(&path).map_err(|problem| {
            Failure::Job(Error::Input { path, source: std::io::Error::other(problem.to_string()) })
        })?
    }

    fn answer(&self, path: &Path) -> Result<Result<(), Failure>, Problem> {
        let mut file = File::open(path)?;
        let program = self.program.as_deref();
        if let Some(program) = program.filter(|_| self.forget) {
            match file.forget(program)? {
                0 => tell(format_args!("nothing is known of {}", printable(program))),
                count => tell(format_args!("forgot {count} {}", if count == 1 { "program" } else { "programs" })),
            }
            return Ok(Ok(()));
        }
        if let Some(page) = &self.gain {
            let html = gain::html(&file.repeated(program)?);
            return Ok(write_whole(page, &html));
        }
        let lines: Vec<String> = match self.export {
            true => file.export(program)?.into_iter().map(|run| run.to_string()).collect(),
            false => self.accounts(&file)?,
        };
        if let Some(program) = program.filter(|_| lines.is_empty()) {
            tell(format_args!("nothing is known of {}", printable(program)));
        }
        Ok(lines.iter().try_for_each(print))
    }
}

impl History {
    /// Returns a line for each program. One that was asked for is also explained: what is known of its demand on each host.
    fn accounts(&self, file: &File) -> Result<Vec<String>, Problem> {
        let mut lines = Vec::new();
        for account in file.accounts(self.program.as_deref())? {
            lines.push(line(&account));
            if self.program.is_some() {
                let demands = file.demands(&account.build)?;
                lines.extend(demands.iter().map(|on| format!("  {}: {}", printable(&on.host), on.sentence())));
                let times = file.measured_sentences(&account.build)?;
                lines.extend(times.iter().map(|sentence| format!("  {}", printable(sentence))));
                for (host, [usual_us, chosen_us]) in file.times(&account.build)? {
                    let (host, usual, chosen) = (printable(&host), usual_us / 1e6, chosen_us / 1e6);
                    lines.push(format!(
                        "  {host}: {usual:.2} s of processor time in the system's order, {chosen:.2} s when chosen"
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

/// Returns the line of a program: its build begins with its name.
fn line(account: &Account) -> String {
    format!("{}: {}", printable(&account.build), account.sentence())
}
