//! Files of text that appear under their name whole, or not at all.

use std::io::Write;
use std::path::Path;

pub use gristmill_os::aside::{Aside, Standard, directory, standard};

use crate::terminal::failure::Failure;

/// Writes a whole file of text.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let written = || {
        let mut aside = Aside::create(path)?;
        aside.file.write_all(text.as_bytes())?;
        aside.publish()
    };
    written().map_err(|source| Failure::output(path, source))
}
