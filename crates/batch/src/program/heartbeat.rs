//! The heartbeat of a program that tells its stage, as jobs of Gristmill do.
//!
//! ```text
//!  bytes 0..8    the number of the stage, in the order of this machine's bytes
//!  bytes 8..16   the bytes of input that are done in it
//! ```
//!
//! The program writes to the file that `GRISTMILL_HEARTBEAT` names, which is in memory and belongs to the queue. It
//! may write as often as it likes, or not at all. Programs in the same stage execute the same code, so a stage is a
//! phase.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};

/// The variable that names the file.
pub const VARIABLE: &str = "GRISTMILL_HEARTBEAT";

/// The addresses that stand for stages. No sampled instruction has one of these.
const STAGES: u64 = 1 << 63;
/// The bytes of code that a stage stands for: one element of a vector.
const STAGE_BYTES: u64 = 64;

/// The file of one program.
#[derive(Debug)]
pub struct Heartbeat(File);

impl Heartbeat {
    pub fn new() -> io::Result<Heartbeat> {
        Ok(Heartbeat(memfd_create("gristmill-heartbeat", MemfdFlags::CLOEXEC)?.into()))
    }

    /// The name under which the program opens it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Returns the stage as an address; `None` if the program has told none.
    pub fn address(&self) -> Option<u64> {
        let mut stage = [0; 8];
        self.0.read_exact_at(&mut stage, 0).ok()?;
        Some(STAGES | (u64::from_ne_bytes(stage).wrapping_mul(STAGE_BYTES) & (STAGES - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_stage_that_was_told_is_an_address_of_its_own() {
        let heartbeat = Heartbeat::new().expect("a file");
        assert_eq!(heartbeat.address(), None);
        let mut addresses = Vec::new();
        for stage in [0_u64, 1, 7, u64::MAX] {
            fs::write(heartbeat.path(), [stage.to_ne_bytes(), [9; 8]].concat()).expect("it is open to the program");
            addresses.extend(heartbeat.address());
        }
        addresses.dedup_by_key(|address| *address / STAGE_BYTES);
        assert!(addresses.len() == 4 && addresses.iter().all(|address| *address >= STAGES), "{addresses:?}");
    }
}
