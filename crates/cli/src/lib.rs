//! The command `gristmill`, as a library: its parts are those of `gristmill-lab`, too.
//!
//! ```text
//!  terminal     messages, errors, progress, standard output
//!  options      files, job options, tables, sizes and durations
//!  output       rows in any format, into files that appear whole or not at all
//!  report       bad records, and statistics of the job
//!  run          the job of a command, from its options to its result
//!  hand_over    the rate at which processes hand over pages
//!  commands     one file for each subcommand
//!  scale        finds why a command does not get faster
//!  batch        runs a list of programs
//! ```
//!
//! Only results go to standard output. Workers are forked from this process, so it starts no threads.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod terminal;
mod options;
mod output;
mod report;
mod run;
pub mod hand_over;
mod commands;
mod scale;
mod batch;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use commands::Applications;
pub use commands::palindromes::Algorithm;
pub use options::tables::tell_notes;
pub use options::text::Text;
pub use output::column::{ColumnType, Field};
pub use report::stats::Form;
pub use run::common_options::CommonOptions;
pub use run::job_runner::{JobRunner, too_large};
pub use terminal::command_line::run_command;
pub use terminal::failure::Failure;
pub use terminal::standard_output::print;

/// MapReduce for one big machine: each worker is a process, and workers exchange pages of shared memory.
#[derive(Parser)]
#[command(name = "gristmill", version, arg_required_else_help = true, after_help = EXIT_STATUS)]
struct Command {
    #[command(subcommand)]
    program: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    #[command(flatten)]
    Application(Box<commands::Applications>),
    Machine(commands::machine::MachineCommand),
    Scale(Box<scale::Scale>),
    Batch(Box<batch::Batch>),
    History(commands::history::History),
    Run(commands::run::RunScript),
    Completions(commands::completions::Completions),
}

const EXIT_STATUS: &str = "\
Exit status: 0 if the result is complete (or its reader closed the pipe), 1 if the job failed, 2 if the command line \
is wrong. Of batch and scale, also 1 if a program failed, or did not run.";

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(moved) = in_the_lab(&words) {
        terminal::messages::tell(format_args!("this is now a part of gristmill-lab: gristmill-lab {moved}"));
        return ExitCode::from(2);
    }
    let run = |command: Command| {
        // A container may be without it. The others start no process.
        let starts = !matches!(command.program, Subcommands::History(_) | Subcommands::Completions(_));
        if starts && !Path::new("/proc/self").exists() {
            terminal::messages::tell(format_args!(
                "/proc is not mounted, where processes are watched: mount -t proc proc /proc"
            ));
            return Err(Failure::Told);
        }
        match command.program {
            Subcommands::Application(application) => application.run(),
            Subcommands::Machine(machine) => machine.run(),
            Subcommands::Scale(scale) => scale.run(),
            Subcommands::Batch(batch) => batch.run(),
            Subcommands::History(history) => history.run(),
            Subcommands::Run(run) => run.run(),
            Subcommands::Completions(completions) => completions.run(<Command as clap::CommandFactory>::command()),
        }
    };
    run_command(run, |error, subcommand, words| if subcommand == "batch" { batch::tip(error, words) } else { None })
}

/// Returns the subcommand of `gristmill-lab` that these words asked this command for, before there was one.
fn in_the_lab(words: &[OsString]) -> Option<&'static str> {
    let is_readers = |word: &OsString| word.as_encoded_bytes().starts_with(b"--readers");
    let names = ["experiment", "generate", "terasort"];
    let (first, rest) = words.split_first()?;
    match rest {
        [second, ..] if first == "batch" && second == "simulate" && !Path::new("simulate").exists() => {
            Some("bandwidth")
        }
        _ if first == "palindromes" && rest.iter().any(is_readers) => Some("palindromes"),
        _ => names.into_iter().find(|name| first == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    /// Formats the options of all subcommands as Markdown.
    fn options() -> String {
        let mut command = Command::command();
        command.build();
        let row = |argument: &clap::Arg| {
            let short = argument.get_short().map(|name| format!("-{name}"));
            let names = short.into_iter().chain(argument.get_long().map(|name| format!("--{name}")));
            let mut name = names.collect::<Vec<_>>().join(", ");
            if argument.get_action().takes_values() {
                let values = argument.get_value_names().unwrap_or_default();
                let values = values.iter().map(|value| format!("{value}")).collect::<Vec<_>>().join(" ");
                name = format!("{name} {values}").trim().to_owned();
            }
            let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let values: Vec<_> =
                argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            if !values.is_empty() && argument.get_action().takes_values() {
                write!(help, " (one of {})", values.join(", ")).expect("memory");
            }
            let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            if !defaults.is_empty() && argument.get_action().takes_values() {
                write!(help, " [default: {}]", defaults.join(" ")).expect("memory");
            }
            format!("| `{}` | {} |\n", name.replace('|', "\\|"), help.replace('|', "\\|").replace('\n', " "))
        };
        let mut times = BTreeMap::<String, usize>::new();
        let subcommands = || command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
        for argument in subcommands().flat_map(clap::Command::get_arguments) {
            *times.entry(row(argument)).or_default() += 1;
        }
        let is_shared = |argument: &clap::Arg| times[&row(argument)] > 5;
        let mut text = "# Options\n\nThis page is made of the definitions of the command line; `GRISTMILL_WRITE_DOCS=1 cargo test \
                        --package gristmill-cli` writes it again.\n"
            .to_owned();
        let mut section = |title: &str, about: &str, rows: Vec<String>| {
            if !rows.is_empty() || !about.is_empty() {
                write!(text, "\n## {title}\n\n").expect("memory");
                if !about.is_empty() {
                    write!(text, "{about}\n\n").expect("memory");
                }
                if !rows.is_empty() {
                    write!(text, "| option | meaning |\n|---|---|\n{}", rows.concat()).expect("memory");
                }
            }
        };
        let first = subcommands().next().expect("there are subcommands");
        let shared = first.get_arguments().filter(|argument| is_shared(argument)).map(row).collect();
        section("Most subcommands", "", shared);
        for subcommand in subcommands() {
            let own = subcommand.get_arguments().filter(|argument| !is_shared(argument)).map(row).collect();
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            section(subcommand.get_name(), &about, own);
            for below in subcommand.get_subcommands().filter(|it| it.get_name() != "help") {
                let own =
                    below.get_arguments().filter(|argument| argument.get_long() != Some("help")).map(row).collect();
                let about = below.get_about().map(ToString::to_string).unwrap_or_default();
                section(&format!("{} {}", subcommand.get_name(), below.get_name()), &about, own);
            }
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
    }

    #[test]
    fn the_page_of_options_matches_the_command_line() {
        // The command has the same options if it is built with more formats.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        if std::env::var_os("GRISTMILL_WRITE_DOCS").is_some() {
            std::fs::write(path, options()).expect("docs can be written");
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == options(),
            "docs/options.md is out of date: GRISTMILL_WRITE_DOCS=1 cargo test --package gristmill-cli"
        );
    }

    /// The page showed `--x COLUMN` as `-x COLUMN`, which the command does not know.
    #[test]
    fn a_long_option_of_one_letter_has_two_dashes() {
        let page = options();
        assert!(page.contains("| `--x COLUMN` |") && page.contains("| `-k, --k K` |"));
    }

    /// The list of subcommands was followed by scrolling, and half of each help by strategies that the plan chooses.
    #[test]
    fn help_fits_one_screen_and_short_help_leaves_strategies_out() {
        let mut command = Command::command().term_width(100);
        command.build();
        assert!(command.render_help().to_string().lines().count() <= 32);
        let count = command.find_subcommand_mut("word-count").expect("it is there");
        let (short, long) = (count.render_help().to_string(), count.render_long_help().to_string());
        for strategy in ["--exchange", "--buffer", "--combine", "--pages", "--partitions", "--placement"] {
            assert!(!short.contains(strategy) && long.contains(strategy), "{strategy}");
        }
        assert!(short.contains("--memory") && short.contains("Failures:"), "{short}");
    }

    #[test]
    fn definitions_of_the_command_line_are_consistent() {
        Command::command().debug_assert();
    }
}
