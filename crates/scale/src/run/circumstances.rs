//! The circumstances in which a run differs from an ordinary one.

use std::ffi::OsString;
use std::process::Command;

use rustix::thread::{CpuSet, disable_transparent_huge_pages, sched_setaffinity};

use super::beside::BesideWork;

/// The circumstances in which a run differs from an ordinary one.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The processors that the command may use; all of them if empty.
    pub processors: Vec<usize>,
    /// Variables of the environment; one that is there already is preceded by this, with the separator.
    pub variables: Vec<(&'static str, OsString, char)>,
    /// True if the kernel gives no huge pages.
    pub small_pages: bool,
    /// Processes beside the run.
    pub beside: Option<(BesideWork, u64)>,
    /// Options for one of our own applications.
    pub options: Vec<OsString>,
    /// Words of the command that are replaced by others.
    pub replaced: Vec<(OsString, OsString)>,
}

impl Circumstances {
    /// Changes the words of a command, whose options begin at `options_at` if it is one of our own applications.
    pub fn change(&self, words: &mut Vec<OsString>, options_at: Option<usize>) {
        for word in words.iter_mut() {
            if let Some((_, other)) = self.replaced.iter().find(|(from, _)| from == word) {
                word.clone_from(other);
            }
        }
        if let Some(at) = options_at {
            words.splice(at..at, self.options.iter().cloned());
        }
    }

    /// Sets them for this process, and for the command that replaces it. What the kernel refuses stays as it is.
    pub fn set(&self, command: &mut Command) {
        if !self.processors.is_empty() {
            let mut set = CpuSet::new();
            self.processors.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
            let _ = sched_setaffinity(None, &set);
        }
        if self.small_pages {
            let _ = disable_transparent_huge_pages(true);
        }
        for (name, value, separator) in &self.variables {
            let mut all = value.clone();
            if let Some(before) = std::env::var_os(name).filter(|before| !before.is_empty()) {
                all.push(separator.to_string());
                all.push(before);
            }
            command.env(name, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_copies_of_files_find_their_places_in_a_command() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let changed = Circumstances {
            options: words("--isolation thread"),
            replaced: vec![("logs".into(), "/dev/shm/logs".into())],
            ..Circumstances::default()
        };
        let words_at = |options_at| {
            let mut all = words("gristmill word-count --workers 2 logs");
            changed.change(&mut all, options_at);
            all
        };
        assert_eq!(words_at(Some(2)), words("gristmill word-count --isolation thread --workers 2 /dev/shm/logs"));
        // Another command has no such options.
        assert_eq!(words_at(None), words("gristmill word-count --workers 2 /dev/shm/logs"));
    }
}
