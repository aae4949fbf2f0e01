//! A job: one program to run, and what it asks for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::take;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One program to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchJob {
    /// The name in tables and files; by default the command.
    pub name: String,
    /// The program and its arguments, at least one word.
    pub words: Vec<OsString>,
    /// Where the number of the slot goes, which is known when the job begins: a word, and a byte in it. See
    /// [`BatchJob::in_slot`].
    pub slots: Vec<(usize, usize)>,
    /// The directory to run in; `None` for that of the queue.
    pub directory: Option<PathBuf>,
    /// Variables that are added to the environment.
    pub environment: Vec<(String, String)>,
    /// Files that it reads. Their sizes tell runs with different input apart.
    pub inputs: Vec<PathBuf>,
    /// Places in the list of jobs that must have succeeded before.
    pub after: Vec<usize>,
    /// Places in the list of jobs that must have ended before, whatever their outcome. A job with any runs even if the
    /// queue has halted.
    pub after_any: Vec<usize>,
    /// The time after which it is ended; 0 for never. `None` if it says nothing of it, as with the next.
    pub timeout: Option<Duration>,
    /// The number of further attempts after a failure.
    pub retries: Option<u32>,
    /// The time before each further attempt.
    pub retry_delay: Option<Duration>,
    /// Among jobs that may begin, those with the highest number do first.
    pub priority: i32,
    /// The memory it needs; 0 if unknown.
    pub memory_bytes: u64,
    /// The number of threads that compute at the same time.
    pub threads: usize,
}

impl BatchJob {
    /// Makes a job of a program and its arguments.
    pub fn words(words: Vec<OsString>) -> BatchJob {
        let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        BatchJob { name: shown.join(" "), words, threads: 1, ..BatchJob::default() }
    }

    /// Returns the job with the number of its slot in its words. Its key does not depend on the slot.
    ///
    /// ```
    /// let template = gristmill_batch::queue::Template::parse(&["work", "--gpu={%}"].map(Into::into), None, 1)?;
    /// assert_eq!(template.without_values().in_slot(2).words, ["work", "--gpu=2"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn in_slot(&self, slot: usize) -> Cow<'_, BatchJob> {
        if self.slots.is_empty() {
            return Cow::Borrowed(self);
        }
        let words = with_slot(&self.words, &self.slots, &slot.to_string());
        Cow::Owned(BatchJob { words, slots: Vec::new(), ..self.clone() })
    }

    /// Makes the directory absolute: a relative one lies in `folder`, and a job without one runs there.
    ///
    /// Where a job runs is part of what it is, so the same line in another folder is another job.
    ///
    /// ```
    /// use std::path::Path;
    /// use gristmill_batch::queue::{Keys, Shell};
    ///
    /// let job = |folder: &str| Shell::default().job("make".into()).in_folder(Path::new(folder));
    /// assert_eq!(job("/srv/a").directory.as_deref(), Some(Path::new("/srv/a")));
    /// assert_ne!(Keys::default().of(&job("/srv/a")), Keys::default().of(&job("/srv/b")));
    /// ```
    pub fn in_folder(self, folder: &Path) -> BatchJob {
        let directory = match &self.directory {
            Some(directory) => folder.join(directory),
            None => folder.to_owned(),
        };
        // Without the parts that lead nowhere: `/srv/./a/` is `/srv/a`.
        BatchJob { directory: Some(directory.components().collect()), ..self }
    }

    /// A digest of name, command and directory.
    fn digest(&self) -> u64 {
        let directory = self.directory.as_ref().map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
        digest([self.name.as_bytes(), directory].into_iter().chain(self.words.iter().map(|word| word.as_bytes())))
    }
}

/// Returns words with the number of a slot in its places, which are in the order of the words.
pub(crate) fn with_slot(words: &[OsString], slots: &[(usize, usize)], number: &str) -> Vec<OsString> {
    let mut words = words.to_vec();
    for (word, at) in slots.iter().rev() {
        let mut bytes = take(&mut words[*word]).into_vec();
        bytes.splice(*at..*at, number.bytes());
        words[*word] = OsString::from_vec(bytes);
    }
    words
}

/// A digest of parts without zero bytes (FNV-1a, 64 bits). It tells things apart, but not from forgeries.
///
/// ```
/// assert_ne!(gristmill_batch::queue::digest([b"a".as_slice(), b"bc"]), gristmill_batch::queue::digest([b"ab".as_slice(), b"c"]));
/// ```
pub fn digest<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> u64 {
    // No part contains a zero byte, so it separates them.
    let bytes = parts.into_iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Makes the keys of jobs in the journal: a digest, and a number where jobs are equal.
///
/// Jobs keep their keys when others are added to the list, or change places.
///
/// ```
/// use gristmill_batch::queue::{Keys, Shell};
///
/// let (mut keys, job) = (Keys::default(), Shell::default().job("make".into()));
/// let (first, second) = (keys.of(&job), keys.of(&job));
/// assert_eq!(first.strip_suffix('1'), second.strip_suffix('2'));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// The number of jobs with each digest.
    seen: BTreeMap<u64, usize>,
}

impl Keys {
    /// Returns the key of the next job of the list.
    pub fn of(&mut self, job: &BatchJob) -> String {
        let digest = job.digest();
        let count = self.seen.entry(digest).or_default();
        *count += 1;
        format!("{digest:016x}.{count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Shell;

    #[test]
    fn the_same_directory_under_another_name_is_the_same_job() {
        let job = |directory: Option<&str>, folder: &str| {
            let job = BatchJob { directory: directory.map(PathBuf::from), ..Shell::default().job("make".into()) };
            Keys::default().of(&job.in_folder(Path::new(folder)))
        };
        let here = job(None, "/srv/a");
        for (directory, folder) in [(".", "/srv/a"), ("a", "/srv"), ("./a/", "/srv/"), ("/srv/a", "/elsewhere")] {
            assert_eq!(job(Some(directory), folder), here, "{directory} in {folder}");
        }
        assert_ne!(job(Some("b"), "/srv/a"), here);
    }

    #[test]
    fn equal_jobs_have_different_keys_that_do_not_depend_on_others() {
        let keys_of = |lines: &[&str]| {
            let mut keys = Keys::default();
            lines.iter().map(|line| keys.of(&Shell::default().job(line.into()))).collect::<Vec<_>>()
        };
        let (short, long) = (keys_of(&["a", "b", "a"]), keys_of(&["a", "new", "a", "b"]));
        assert_eq!([&short[0], &short[1], &short[2]], [&long[0], &long[3], &long[2]]);
        assert!(short[0] != short[2] && short[0] != short[1]);
        let words = |words: &[&str]| BatchJob::words(words.iter().map(OsString::from).collect()).digest();
        assert_ne!(words(&["a", "b c"]), words(&["a b", "c"]));
    }
}
