//! The line that stands for a job with `--dry-run`: it can be pasted into a shell.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use gristmill_queue::{Job, quoted};

use crate::terminal::messages::printable;

/// Returns the line of a job, and behind it the names of those that it waits for. The shell is in `folder`.
pub fn line(job: &Job, jobs: &[Job], folder: &Path) -> OsString {
    // One after another, all would run in the first slot.
    let job = job.in_slot(1);
    let directory = job.directory.as_deref().filter(|directory| *directory != folder);
    let is_plain = directory.is_none() && job.environment.is_empty();
    let mut line = match &job.words[..] {
        [shell, flag, line] if shell == "sh" && flag == "-c" && is_plain => {
            // A line is shown as it was written; in a terminal, it must not move the cursor.
            if io::stdout().is_terminal() { printable(&line.to_string_lossy()).into() } else { line.clone() }
        }
        _ => in_words(&job, directory).into(),
    };
    for (before, when) in [(&job.after, "after"), (&job.after_any, "after any outcome of")] {
        let names: Vec<&str> = before.iter().map(|before| jobs[*before].name.as_str()).collect();
        if !names.is_empty() {
            line.push(format!("  # {when} {}", printable(&names.join(", "))));
        }
    }
    line
}

fn in_words(job: &Job, directory: Option<&Path>) -> String {
    let variables = job.environment.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
    let env = (!job.environment.is_empty()).then(|| "env".into());
    let words = env.into_iter().chain(variables).chain(job.words.iter().cloned());
    let words = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    match directory {
        Some(directory) => format!("(cd {} && {words})", quoted(directory.as_os_str())),
        None => words,
    }
}
