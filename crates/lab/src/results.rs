//! The files that an experiment writes, each whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use gristmill_cli::Failure;
use gristmill_os::whole_file::Aside;

/// A file for results. It is opened first, so that a path that cannot be written fails at once and not after minutes.
pub struct ResultFile {
    path: PathBuf,
    aside: Aside,
}

impl ResultFile {
    pub fn begin(path: &Path) -> Result<ResultFile, Failure> {
        let aside = Aside::create(path).map_err(|source| Failure::output(path, source))?;
        Ok(ResultFile { path: path.to_owned(), aside })
    }

    /// Writes the file, which appears now.
    pub fn publish(self, content: &str) -> Result<(), Failure> {
        let ResultFile { path, mut aside } = self;
        let written = aside.file.write_all(content.as_bytes()).and_then(|()| aside.publish());
        written.map_err(|source| Failure::output(path, source))
    }
}
