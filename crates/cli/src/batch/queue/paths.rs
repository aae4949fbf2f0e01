//! The files and folders that the options name: none is the list, and no two are the same.

use std::path::{Path, PathBuf};

use crate::output::outputs::Outputs;
use crate::terminal::failure::Failure;

/// Fails if two of these are the same file, or one of them has the jobs, or values for them. Links are seen through.
pub fn check_apart(lists: &[PathBuf], written: [(&'static str, Option<&Path>); 5]) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    for (option, path) in written {
        path.iter().for_each(|path| outputs.file(option, path));
    }
    outputs.check()?;
    outputs.check_named(lists.iter().map(PathBuf::as_path))
}
