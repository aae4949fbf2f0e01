//! The files and folders that the options name: none is the list, and no two are the same.

use std::path::Path;

use crate::output::outputs::Outputs;
use crate::terminal::failure::Failure;

/// Fails if two of these are the same file, or one is the list of jobs. Links are seen through. `list` is `None` if the jobs are not read from a file or a stream.
pub fn check_apart(list: Option<&Path>, written: [(&'static str, Option<&Path>); 5]) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    for (option, path) in written {
        path.iter().for_each(|path| outputs.file(option, path));
    }
    outputs.check()?;
    outputs.check_named(list.into_iter())
}
