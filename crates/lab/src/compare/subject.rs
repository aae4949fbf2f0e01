//! Subjects of comparisons: a workload of an application with its input.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::generate::Size;
use crate::workloads::Workload;

/// A workload with its input.
pub struct Subject {
    pub workload: &'static Workload,
    /// The description of the input.
    pub input: String,
    /// The subcommand with its input.
    pub arguments: Vec<OsString>,
    /// The same for the report, with the input's path as a user has it.
    pub shown: Vec<OsString>,
}

impl Subject {
    /// Makes a subject of a workload of this size and these input files, as
    /// [`Generator::make`](crate::generate::Generator::make) made them, or none. The report shows them below `shown`.
    pub fn new(workload: &'static Workload, size: Size, paths: &[PathBuf], shown: &Path) -> Subject {
        let with = |paths: Vec<PathBuf>| -> Vec<OsString> {
            (workload.command)(size)
                .split(' ')
                .map(OsString::from)
                .chain(paths.into_iter().map(OsString::from))
                .collect()
        };
        let names = paths.iter().map(|path| shown.join(path.file_name().expect("a generated file has a name")));
        let input = (workload.reads)(size);
        Subject {
            workload,
            input: match paths {
                [] => input.to_owned(),
                _ => format!("{input}, {}", indicatif::DecimalBytes(paths.iter().map(bytes).sum())),
            },
            arguments: with(paths.to_vec()),
            shown: with(names.collect()),
        }
    }
}

/// Returns the bytes of a file, or of the files in a directory.
fn bytes(path: &PathBuf) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len()).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |facts| facts.len()),
    }
}
