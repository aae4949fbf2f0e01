//! A heartbeat for the program that started the job: which stage runs, and how far it is.
//!
//! If the environment names a file in `GRISTMILL_HEARTBEAT`, the coordinator writes 16 bytes at its start with each
//! report of progress: the number of the stage, and the bytes of input that are done. The reader learns from it which
//! executions do the same work. Nothing depends on the reader: a file that cannot be written is left alone.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::control::progress::Progress;

/// The variable that names the file.
const VARIABLE: &str = "GRISTMILL_HEARTBEAT";

/// An open file for the heartbeat.
#[derive(Debug)]
pub(crate) struct Heartbeat(File);

impl Heartbeat {
    /// Opens the file that the environment names, if it does.
    pub(crate) fn from_environment() -> Option<Heartbeat> {
        let path = std::env::var_os(VARIABLE)?;
        OpenOptions::new().write(true).open(path).ok().map(Heartbeat)
    }

    /// Writes the stage and what is done. Mapping is stage 0 of each step, and making the result is stage 1.
    pub(crate) fn beat(&self, progress: &Progress) {
        let stage = (u64::from(progress.step) << 1) | u64::from(progress.finishing);
        let bytes = [stage.to_ne_bytes(), progress.done_bytes.to_ne_bytes()].concat();
        // The reader may have gone.
        drop(self.0.write_all_at(&bytes, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_has_the_stage_and_the_bytes_that_are_done() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let heartbeat = Heartbeat(file.reopen().expect("it opens"));
        let progress = |step, finishing, done_bytes| Progress {
            done_bytes,
            total_bytes: 9,
            workers: 1,
            deaths: 0,
            step,
            round: 0,
            finishing,
        };
        for (step, finishing, stage) in [(0, false, 0_u64), (0, true, 1), (3, false, 6)] {
            heartbeat.beat(&progress(step, finishing, 5));
            let mut bytes = Vec::new();
            std::io::Seek::rewind(&mut file)
                .and_then(|()| std::io::Read::read_to_end(&mut file, &mut bytes))
                .expect("read");
            assert_eq!(bytes, [stage.to_ne_bytes(), 5_u64.to_ne_bytes()].concat());
        }
    }
}
