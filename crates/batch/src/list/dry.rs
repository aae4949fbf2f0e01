//! The line that stands for a job with `--dry-run`: pasted into a shell, it does the same.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::queue::{BatchJob, quoted};

use gristmill_report::messages::printable;

/// Names of programs that shells take for commands of their own: `exit` would end the shell, and `echo` prints other
/// text in each.
const BUILT_IN: [&str; 60] = [
    ".", ":", "[", "alias", "autoload", "bg", "bind", "break", "builtin", "caller", "cd", "chdir", "command",
    "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg",
    "getopts", "hash", "history", "jobs", "kill", "let", "local", "logout", "popd", "print", "printf", "pushd", "pwd",
    "read", "readonly", "return", "set", "shift", "shopt", "source", "stop", "suspend", "test", "times", "trap",
    "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "whence",
];

/// Returns the line of a job, followed by a comment with the names of the jobs that it waits for. `folder` is the
/// current folder.
pub fn line(job: &BatchJob, jobs: &[BatchJob], folder: &Path) -> String {
    // One after another, all would run in the first slot.
    let job = job.in_slot(1);
    let directory = job.directory.as_deref().filter(|directory| *directory != folder);
    // A program must not read the lines that are pasted after its own.
    let mut line = in_words(&job, directory) + " < /dev/null";
    for (before, when) in [(&job.after, "after"), (&job.after_any, "after any outcome of")] {
        let names: Vec<&str> = before.iter().map(|before| jobs[*before].name.as_str()).collect();
        if !names.is_empty() {
            line.push_str(&format!("  # {when} {}", printable(&names.join(", "))));
        }
    }
    line
}

fn in_words(job: &BatchJob, directory: Option<&Path>) -> String {
    let variables = job.environment.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
    let is_built_in = BUILT_IN.iter().any(|name| job.words[0] == OsStr::new(name));
    let env = (is_built_in || !job.environment.is_empty()).then(|| "env".into());
    let words = env.into_iter().chain(variables).chain(job.words.iter().cloned());
    let words = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    match directory {
        Some(directory) => format!("(cd {} && {words})", quoted(directory.as_os_str())),
        None => words,
    }
}
