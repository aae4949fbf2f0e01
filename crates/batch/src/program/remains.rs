//! Processes that programs left running when they ended: their groups are removed once they are empty.

use std::time::{Duration, Instant};

use gristmill_os::process::descendants;
use gristmill_os::program::Group;
use rustix::process::{Pid, WaitOptions, waitpid};

/// The time between two looks.
pub const SWEEP: Duration = Duration::from_millis(20);
/// The time after which a group that does not become empty is left alone: a process may hang in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);

/// Groups that are not empty yet, each with the time of its program's end.
#[derive(Default)]
pub struct Remains(Vec<(Group, Instant)>);

impl Remains {
    pub fn add(&mut self, group: Group) {
        self.0.push((group, Instant::now()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes groups that have become empty. `is_program` tells a running program from what an ended one left.
    pub fn sweep(&mut self, is_program: impl Fn(Pid) -> bool) {
        if self.is_empty() {
            return;
        }
        // What a program left running is our child since that program's end.
        let orphans = descendants(std::process::id()).into_iter().filter_map(|pid| Pid::from_raw(pid as i32));
        for orphan in orphans.filter(|pid| !is_program(*pid)) {
            // Most have not ended, or are no children of ours.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
        self.0.retain(|(group, since)| {
            let is_empty = group.remove();
            if !is_empty {
                group.kill(&[]);
            }
            !is_empty && since.elapsed() < PATIENCE
        });
    }
}
