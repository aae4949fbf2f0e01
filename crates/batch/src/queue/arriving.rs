//! A list that arrives in pieces: each line is a job, or a value for one, as soon as it is whole.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::queue::job::BatchJob;
use crate::queue::shell::Shell;
use crate::queue::template::Template;

/// The longest line. The kernel takes no word above 128 KiB, and says so of the job; what is longer than this is no
/// list.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The mark that some editors write at the beginning of a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes jobs from the lines of a list, while they arrive.
///
/// A line need not be UTF-8: names of files are not. It ends with a line end, or with another byte that is chosen.
///
/// ```
/// use gristmill_batch::queue::{Arriving, Shell, Template};
///
/// let mut list = Arriving::lines(Shell::default(), b'\n');
/// assert!(list.take(b"# two jobs\nxz")?.is_empty());
/// let first = list.take(b" a\n\n  xz b")?;
/// let last = list.end()?;
/// assert_eq!([&first[0].name, &last[0].name], ["xz a", "xz b"]);
///
/// let mut list = Arriving::values(Template::parse(&["xz".into()], None, 1)?, 0);
/// assert_eq!(list.take(b"a b\0c")?[0].words, ["xz", "a b"]);
/// assert_eq!(list.end()?[0].words, ["xz", "c"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Arriving {
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// The number of whole lines so far.
    lines: usize,
    /// The byte that ends a line.
    end: u8,
    kind: Kind,
}

/// The kind of the lines.
#[derive(Debug)]
enum Kind {
    Commands {
        shell: Shell,
        /// No job has arrived yet.
        is_first: bool,
    },
    Values {
        template: Template,
        /// Those of the next job.
        values: Vec<OsString>,
        /// The number of jobs so far.
        jobs: usize,
    },
}

impl Arriving {
    /// Makes a list whose lines are commands for a shell. Empty lines, and lines that begin with `#`, are left out.
    pub fn lines(shell: Shell, end: u8) -> Arriving {
        Arriving { begun: Vec::new(), lines: 0, end, kind: Kind::Commands { shell, is_first: true } }
    }

    /// Makes a list whose lines are values for a command. Empty ones are values, too.
    pub fn values(template: Template, end: u8) -> Arriving {
        Arriving { begun: Vec::new(), lines: 0, end, kind: Kind::Values { template, values: Vec::new(), jobs: 0 } }
    }

    /// Takes the next bytes of the list, and returns the jobs that are whole now.
    ///
    /// # Errors
    ///
    /// A sentence, when a line is longer than 16 MiB or has a zero byte, or the first one begins a list in TOML.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<BatchJob>, String> {
        let mut jobs = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == self.end) {
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
    /// As [`Arriving::take`]; and when the last values are too few for the placeholders of the command, or there is no
    /// value at all and the command has no placeholder, so that it may be meant to run once.
    pub fn end(&mut self) -> Result<Vec<BatchJob>, String> {
        let last = if self.begun.is_empty() { None } else { self.whole_line()? };
        let rest = match &mut self.kind {
            Kind::Values { template, .. } if self.lines == 0 && !template.has_placeholder() => {
                return Err(
                    "it has no value, so nothing ran. Write values behind :::, or < /dev/null to run the command once"
                        .to_owned(),
                );
            }
            Kind::Values { template, values, jobs } if !values.is_empty() => Some(template.job(values, *jobs + 1)?),
            _ => None,
        };
        Ok(last.into_iter().chain(rest).collect())
    }

    fn whole_line(&mut self) -> Result<Option<BatchJob>, String> {
        self.check_length()?;
        self.lines += 1;
        let line = std::mem::take(&mut self.begun);
        no_zero_byte(&line, self.lines)?;
        match &mut self.kind {
            Kind::Commands { shell, is_first } => {
                let line = if self.lines == 1 { line.strip_prefix(MARK).unwrap_or(&line) } else { &line };
                let line = line.trim_ascii();
                let is_job = !line.is_empty() && !line.starts_with(b"#");
                if is_job && std::mem::take(is_first) && is_table(line) {
                    return Err(format!(
                        "line {} begins a list in TOML: write it to a file whose name ends with .toml, and name that",
                        self.lines
                    ));
                }
                Ok(is_job.then(|| shell.job(OsString::from_vec(line.to_vec()))))
            }
            Kind::Values { template, values, jobs } => {
                values.push(OsString::from_vec(line));
                if values.len() < template.per_job() {
                    return Ok(None);
                }
                *jobs += 1;
                template.job(&std::mem::take(values), *jobs).map(Some)
            }
        }
    }

    fn check_length(&self) -> Result<(), String> {
        if self.begun.len() <= LINE_BYTES_MAX {
            return Ok(());
        }
        Err(format!("line {} is longer than {} MiB: this is no list of commands", self.lines + 1, LINE_BYTES_MAX >> 20))
    }
}

/// Refuses a line that no program can be given.
///
/// # Errors
///
/// A sentence with the number of the line, counted from 1, when there is a zero byte in it.
///
/// ```
/// let wrong = gristmill_batch::queue::no_zero_byte(b"a\0b\0", 1).expect_err("a zero byte");
/// assert!(wrong.contains("line 1") && wrong.contains("add -0"));
/// ```
pub fn no_zero_byte(line: &[u8], number: usize) -> Result<(), String> {
    match line.contains(&0) {
        true => Err(format!(
            "line {number} has a zero byte, which no program can be given: add -0 if zero bytes end what is listed, as find -print0 writes it"
        )),
        false => Ok(()),
    }
}

/// Returns true for the line with which a list in TOML begins.
fn is_table(line: &[u8]) -> bool {
    line.iter().filter(|byte| !byte.is_ascii_whitespace()).eq(b"[[job]]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Keys;
    use proptest::prelude::*;

    fn names(jobs: &[BatchJob]) -> Vec<String> {
        jobs.iter().map(|job| job.name.clone()).collect()
    }

    /// A list with one name in Latin-1 was refused whole.
    #[test]
    fn a_line_need_not_be_utf_8() {
        let mut list = Arriving::lines(Shell::default(), b'\n');
        let jobs = list.take(b"xz caf\xe9\nxz caf\xe8\n").expect("short lines");
        assert_eq!(jobs[0].words[2], OsString::from_vec(b"xz caf\xe9".to_vec()));
        assert_ne!(Keys::default().of(&jobs[0]), Keys::default().of(&jobs[1]));
    }

    /// `printf 'a\nb\n' | gristmill batch -- echo` ignored its input.
    #[test]
    fn the_lines_of_a_pipe_are_values() {
        let list = |command: &[&str], per_job, end| {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            Arriving::values(Template::parse(&command, None, per_job).expect("placeholders"), end)
        };
        let mut echo = list(&["echo"], 2, b'\n');
        let first = echo.take(b"# a \n\nc\xe9").expect("short lines");
        assert_eq!(names(&first), ["echo # a  "]);
        assert_eq!(echo.end().expect("a value")[0].words[1], OsString::from_vec(b"c\xe9".to_vec()));
        let mut zero = list(&["echo", "{#}", "{}"], 1, 0);
        assert_eq!(names(&zero.take(b"a\nb\0\0").expect("short lines")), ["echo 1 a\nb", "echo 2 "]);
        assert_eq!(zero.end(), Ok(Vec::new()));
        let mut pairs = list(&["mv", "{1}", "{2}"], 2, b'\n');
        assert_eq!(names(&pairs.take(b"a\nb\nc\n").expect("short lines")), ["mv a b"]);
        assert!(pairs.end().is_err_and(|wrong| wrong.contains("{2} is left without one")));
        assert!(list(&["make"], 1, b'\n').end().is_err_and(|wrong| wrong.contains("< /dev/null")));
        assert_eq!(list(&["make", "{}"], 1, b'\n').end(), Ok(Vec::new()));
    }

    /// `gristmill batch - < jobs.toml` ran `[[job]]` in the shell, and a list from `find -print0` said "nul byte found
    /// in provided data".
    #[test]
    fn a_list_that_is_none_of_lines_is_refused_with_what_to_do() {
        for (text, wrong) in [
            (&b"# jobs\n\n[[ job ]]\ncommand = 'a'\n"[..], "line 3 begins a list in TOML"),
            (b"\xef\xbb\xbf[[job]]\n", "line 1 begins a list in TOML"),
            (b"a\nb\0c\n", "line 2 has a zero byte, which no program can be given: add -0"),
        ] {
            let refused = Arriving::lines(Shell::default(), b'\n').take(text);
            assert!(refused.is_err_and(|why| why.contains(wrong)), "{wrong}");
        }
        let template = || Template::parse(&["xz".into()], None, 1).expect("no placeholder");
        let mut values = Arriving::values(template(), b'\n');
        assert_eq!(values.take(b"a\0b\0"), Ok(Vec::new()));
        assert!(values.end().is_err_and(|why| why.contains("line 1 has a zero byte")));
        let mut values = Arriving::values(template(), b'\n');
        assert_eq!(names(&values.take(b"[[job]]\n").expect("a value")), ["xz [[job]]"]);
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut list = Arriving::lines(Shell::default(), b'\n');
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
            let (mut list, mut jobs, mut from) = (Arriving::lines(Shell::default(), b'\n'), Vec::new(), 0);
            for to in cuts {
                jobs.extend(list.take(&text.as_bytes()[from..to]).expect("short lines"));
                from = to;
            }
            jobs.extend(list.end().expect("short lines"));
            prop_assert_eq!(names(&jobs), expected);
        }
    }
}
