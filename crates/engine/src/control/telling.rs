//! The pipe by which workers tell the coordinator of bad records.

use std::io::{self, PipeReader, PipeWriter};

/// The pipe by which workers tell.
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
