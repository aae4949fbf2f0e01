//! The arguments of this process: parsed, run, and answered with an exit status.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::terminal::failure::Failure;
use crate::terminal::messages::{printable, printable_lines};

/// Runs the command that the arguments of this process name.
///
/// For wrong arguments, `tip` returns what was probably meant; it gets the name of the subcommand and all words.
pub fn run_command<C: Parser>(
    run: impl FnOnce(C) -> Result<(), Failure>,
    tip: impl FnOnce(&clap::Error, &str, &[OsString]) -> Option<&'static str>,
) -> ExitCode {
    // A write beyond the limit on file sizes becomes an error that names the file, instead of a fatal signal.
    let _guard = gristmill_os::file_size::LimitIsAnError::new();
    let failed = |failure: Failure| failure.report(&mut asked_for::<C>());
    match C::try_parse() {
        Ok(command) => run(command).map_or_else(failed, |()| ExitCode::SUCCESS),
        Err(error) => {
            let tip = tip(&error, asked_for::<C>().get_name(), &std::env::args_os().collect::<Vec<_>>());
            match told(&error, tip) {
                // If help could not be printed, the command fails.
                Err(source) if !error.use_stderr() && source.kind() != io::ErrorKind::BrokenPipe => {
                    failed(Failure::output("standard output", source))
                }
                _ => ExitCode::from(error.exit_code() as u8),
            }
        }
    }
}

/// Prints help, or why the command makes no sense.
fn told(error: &clap::Error, tip: Option<&str>) -> io::Result<()> {
    // The message repeats what was typed.
    let is_plain = |word: OsString| word.to_str().is_some_and(|word| printable(word) == word);
    let text = error.render().to_string();
    let said = if error.use_stderr() { with_tip(in_words(&text), tip) } else { text.clone() };
    match error.use_stderr() || !gristmill_os::standard::was_closed(1) {
        true if error.use_stderr() && (said != text || !std::env::args_os().all(is_plain)) => {
            io::stderr().write_all(printable_lines(&said).as_bytes())
        }
        true => error.print(),
        false => Err(rustix::io::Errno::BADF.into()),
    }
}

/// Replaces Rust's message about text that is not a number with one that helps a user.
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
fn with_tip(text: String, tip: Option<&str>) -> String {
    match (tip, text.split_once('\n'), text.find("\nUsage:")) {
        (Some(tip), Some((first, _)), Some(usage)) => format!("{first}\n\n  tip: {tip}\n{}", &text[usage..]),
        _ => text,
    }
}

/// Returns the subcommand of this process. Messages show its usage.
fn asked_for<C: Parser>() -> clap::Command {
    let mut command = C::command();
    command.build();
    for word in std::env::args_os().skip(1) {
        match command.find_subcommand(&word) {
            Some(subcommand) => command = subcommand.clone(),
            None => break,
        }
    }
    command
}
