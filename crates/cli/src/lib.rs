//! The command `gristmill`, as a library: its parts are those of `gristmill-lab`, too.
//!
//! ```text
//!  terminal     messages, errors, progress, standard output
//!  options      files, job options, tables, sizes and durations
//!  output       rows in any format, into files that appear whole or not at all
//!  report       bad records, and statistics of the job
//!  run          the job of a command, from its options to its result
//!  hand_over    from one process to another, in three ways, and how fast
//!  commands     one file for each subcommand
//!  experiment   compares strategies
//!  scale        finds why a command does not get faster
//!  batch        runs a list of programs; simulates the choice of those that run together
//! ```
//!
//! Only results go to standard output. Workers are forked from this process, so it starts no threads.

mod terminal;
mod options;
mod output;
mod report;
mod run;
mod hand_over;
mod commands;
mod experiment;
mod scale;
mod batch;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::terminal::messages::{printable, printable_lines};

/// MapReduce for one big machine: each worker is a process, and workers exchange pages of shared memory.
#[derive(Parser)]
#[command(name = "gristmill", version, arg_required_else_help = true, after_help = EXIT_STATUS)]
struct Command {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    #[command(flatten)]
    Application(Box<commands::Applications>),
    Generate(commands::generate::Generate),
    Experiment(experiment::Experiment),
    Machine(commands::machine::Machine),
    Scale(Box<scale::Scale>),
    Batch(Box<batch::Batch>),
    History(commands::history::History),
    Run(commands::run::Run),
    Completions(commands::completions::Completions),
    #[command(hide = true)]
    HandOver(hand_over::HandOver),
}

const EXIT_STATUS: &str = "\
Exit status: 0 if the result is complete (or its reader closed the pipe), 1 if the job failed, 2 if the command line \
is wrong. Of batch and scale, also 1 if a program failed, or did not run.";

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    // A write beyond the limit on file sizes becomes an error that names the file, instead of a fatal signal.
    let _guard = gristmill_os::file_size::LimitIsAnError::new();
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => return told(&error),
    };
    let outcome = match command.program {
        Program::Application(application) => application.run(),
        Program::Generate(generate) => generate.run(),
        Program::Experiment(experiment) => experiment.run(),
        Program::Machine(machine) => machine.run(),
        Program::Scale(scale) => scale.run(),
        Program::Batch(batch) => batch.run(),
        Program::History(history) => history.run(),
        Program::Run(run) => run.run(),
        Program::Completions(completions) => completions.run(Command::command()),
        Program::HandOver(hand_over) => hand_over.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&mut asked_for()),
    }
}

/// Prints help, or why the command makes no sense.
fn told(error: &clap::Error) -> ExitCode {
    // The message repeats what was typed.
    let is_plain = |word: std::ffi::OsString| word.to_str().is_some_and(|word| printable(word) == word);
    let text = error.render().to_string();
    let said = if error.use_stderr() { with_tip(error, in_words(&text)) } else { text.clone() };
    let printed = match error.use_stderr() || !gristmill_os::standard::was_closed(1) {
        true if error.use_stderr() && (said != text || !std::env::args_os().all(is_plain)) => {
            std::io::stderr().write_all(printable_lines(&said).as_bytes())
        }
        true => error.print(),
        false => Err(rustix::io::Errno::BADF.into()),
    };
    match printed {
        // If help could not be printed, the command fails.
        Err(source) if !error.use_stderr() && source.kind() != std::io::ErrorKind::BrokenPipe => {
            terminal::failure::Failure::output("standard output", source).report(&mut asked_for())
        }
        _ => ExitCode::from(error.exit_code() as u8),
    }
}

/// Replaces what Rust says of a text that is no number by what a user can use.
fn in_words(text: &str) -> String {
    let words = [
        ("invalid digit found in string", "it is not a whole number"),
        ("cannot parse integer from empty string", "it is empty, and not a whole number"),
        ("number would be zero for non-zero type", "the least is 1"),
        ("number too large to fit in target type", "it is too large"),
    ];
    words.iter().fold(text.to_owned(), |text, (rust, plain)| text.replace(&format!(": {rust}"), &format!(": {plain}")))
}

/// Adds what was probably meant, instead of a tip that fits any command.
fn with_tip(error: &clap::Error, text: String) -> String {
    let words: Vec<_> = std::env::args_os().collect();
    let tip = if asked_for().get_name() == "batch" { batch::tip(error, &words) } else { None };
    match (tip, text.split_once('\n'), text.find("\nUsage:")) {
        (Some(tip), Some((first, _)), Some(usage)) => format!("{first}\n\n  tip: {tip}\n{}", &text[usage..]),
        _ => text,
    }
}

/// Returns the subcommand of this process. Messages show its usage.
fn asked_for() -> clap::Command {
    let mut command = Command::command();
    command.build();
    for word in std::env::args_os().skip(1) {
        match command.find_subcommand(&word) {
            Some(subcommand) => command = subcommand.clone(),
            None => break,
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn definitions_of_the_command_line_are_consistent() {
        Command::command().debug_assert();
    }
}
