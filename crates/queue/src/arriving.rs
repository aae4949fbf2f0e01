//! A list of jobs that arrives in pieces: each line is a job as soon as it is whole.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::job::Job;

/// The longest line. The kernel takes no word above 128 KiB, and says so of the job; what is longer than this is no list.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The mark that some editors write at the beginning of a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes jobs from the lines of a list, while they arrive.
///
/// Each line is a command for the shell. Empty lines, and lines that begin with `#`, are left out. A line need not be UTF-8: names of files
/// are not.
///
/// ```
/// let mut list = gristmill_queue::Arriving::default();
/// assert!(list.take(b"# two jobs\nxz")?.is_empty());
/// let first = list.take(b" a\n\n  xz b")?;
/// let last = list.end()?;
/// assert_eq!([&first[0].name, &last[0].name], ["xz a", "xz b"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Default)]
pub struct Arriving {
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// The number of whole lines so far.
    lines: usize,
}

impl Arriving {
    /// Takes the next bytes of the list, and returns the jobs that are whole now.
    ///
    /// # Errors
    ///
    /// A sentence, when a line is longer than 16 MiB.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Job>, String> {
        let mut jobs = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            jobs.extend(self.whole_line()?);
        }
        self.begun.extend_from_slice(rest);
        self.check_length()?;
        Ok(jobs)
    }

    /// Ends the list: its last line may lack an end.
    ///
    /// # Errors
    ///
    /// As [`Arriving::take`].
    pub fn end(&mut self) -> Result<Vec<Job>, String> {
        Ok(self.whole_line()?.into_iter().collect())
    }

    fn whole_line(&mut self) -> Result<Option<Job>, String> {
        self.check_length()?;
        let line = std::mem::take(&mut self.begun);
        let line = if self.lines == 0 { line.strip_prefix(MARK).unwrap_or(&line) } else { &line };
        self.lines += 1;
        let line = line.trim_ascii();
        let is_job = !line.is_empty() && !line.starts_with(b"#");
        Ok(is_job.then(|| Job::shell(OsString::from_vec(line.to_vec()))))
    }

    fn check_length(&self) -> Result<(), String> {
        if self.begun.len() <= LINE_BYTES_MAX {
            return Ok(());
        }
        Err(format!("line {} is longer than {} MiB: this is no list of commands", self.lines + 1, LINE_BYTES_MAX >> 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(jobs: &[Job]) -> Vec<String> {
        jobs.iter().map(|job| job.name.clone()).collect()
    }

    /// A list with one name in Latin-1 was refused whole.
    #[test]
    fn a_line_need_not_be_utf_8() {
        let mut list = Arriving::default();
        let jobs = list.take(b"xz caf\xe9\nxz caf\xe8\n").expect("short lines");
        assert_eq!(jobs[0].words[2], OsString::from_vec(b"xz caf\xe9".to_vec()));
        let keys = crate::keys(&jobs);
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut list = Arriving::default();
        let wrong = (0..40).find_map(|_| list.take(&[0; 1 << 20]).err()).expect("an error");
        assert_eq!(wrong, "line 1 is longer than 16 MiB: this is no list of commands");
    }

    proptest! {
        #[test]
        fn the_jobs_do_not_depend_on_the_pieces_in_which_a_list_arrives(
            text in "(\u{feff})?[a-c# \r\n]{0,60}",
            cuts in prop::collection::vec(0..60_usize, 0..8),
        ) {
            let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
            let expected: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut list, mut jobs, mut from) = (Arriving::default(), Vec::new(), 0);
            for to in cuts {
                jobs.extend(list.take(&text.as_bytes()[from..to]).expect("short lines"));
                from = to;
            }
            jobs.extend(list.end().expect("short lines"));
            prop_assert_eq!(names(&jobs), expected);
        }
    }
}
