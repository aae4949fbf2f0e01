//! The pipe through which workers report bad records.

use std::io::{self, PipeReader, PipeWriter};

/// The pipe through which workers report.
pub(crate) struct Telling {
    pub from: PipeReader,
    pub to: PipeWriter,
}

impl Telling {
    pub fn new() -> io::Result<Telling> {
        let (from, to) = io::pipe()?;
        rustix::io::ioctl_fionbio(&from, true)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        Ok(Telling { from, to })
    }
}
