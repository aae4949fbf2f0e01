//! What differs from an ordinary run.

use std::ffi::OsString;
use std::process::Command;

use rustix::thread::{CpuSet, disable_transparent_huge_pages, sched_setaffinity};

use super::beside::Work;

/// What differs from an ordinary run.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The processors that the command may use; all of them if empty.
    pub processors: Vec<usize>,
    /// Variables of the environment; one that is there already is preceded by this, with the separator.
    pub variables: Vec<(&'static str, OsString, char)>,
    /// True if the kernel gives no huge pages.
    pub small_pages: bool,
    /// Processes beside the run.
    pub beside: Option<(Work, u64)>,
}

impl Circumstances {
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
