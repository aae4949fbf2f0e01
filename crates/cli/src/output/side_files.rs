//! Files beside the result that options name, whole or not at all ([`gristmill_os::whole_file`]).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use gristmill_os::whole_file::{Aside, Standard, directory, standard};

use crate::terminal::failure::Failure;

/// A file that an option names. It is begun early, so that a failure to write shows before the work is done.
pub struct WholeFile {
    /// Its name, once it is whole.
    pub path: PathBuf,
    aside: Aside,
}

impl WholeFile {
    /// Begins the file.
    pub fn begin(path: &Path) -> Result<WholeFile, Failure> {
        let aside = Aside::create(path).map_err(|source| Failure::output(path, source))?;
        Ok(WholeFile { path: path.to_owned(), aside })
    }

    /// Writes its content by a function.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        self.aside.write(write).map_err(|source| Failure::output(self.path, source))
    }
}

/// Writes a whole file of text.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    WholeFile::begin(path)?.write(|to| to.write_all(text.as_bytes()))
}
