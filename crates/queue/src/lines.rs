//! A list of jobs with a shell command in each line.

use crate::job::Job;

/// Makes a job of each line. Empty lines, and lines that begin with `#`, are left out.
///
/// ```
/// let jobs = gristmill_queue::lines("# two jobs\nxz a\n\n  xz b  \n");
/// assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["xz a", "xz b"]);
/// ```
pub fn lines(text: &str) -> Vec<Job> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(Job::shell).collect()
}
