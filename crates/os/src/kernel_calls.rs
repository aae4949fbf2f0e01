//! The kernel's work for programs: chains of calls within the kernel, sampled by its task clock (`perf_event_open`).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::perf::{EXCLUDE_CALLS_OF_USER, EXCLUDE_USER};
use crate::perf_ring::Ring;

/// The OS pages of a ring. Chains of thirty calls fill it in a second at 1 kHz.
const RING_PAGES: usize = 64;
/// Fields of a record: `PERF_SAMPLE_TID`, `PERF_SAMPLE_CALLCHAIN`.
const SAMPLE: u64 = 1 << 1 | 1 << 5;
/// Numbers from here on are no addresses, but tell what kind of addresses follow (`PERF_CONTEXT_MAX`).
const MARKS: u64 = -4095_i64 as u64;

/// Samples of the programs that the calling thread starts.
#[derive(Debug)]
pub struct KernelCalls {
    rings: Vec<Ring>,
    _events: Vec<OwnedFd>,
}

impl KernelCalls {
    /// Samples all programs that the calling thread starts from now on, and those that they start, once for each
    /// `period` of their processor time on these processors, if the kernel works for them at that moment.
    ///
    /// # Errors
    ///
    /// `EACCES` or `EPERM` where this user may not, `ENOSYS` where the kernel has none.
    pub fn start(processors: &[usize], period: Duration) -> io::Result<KernelCalls> {
        let mut calls = KernelCalls { rings: Vec::new(), _events: Vec::new() };
        for processor in processors {
            let ring = Ring::new(*processor, SAMPLE, RING_PAGES)?;
            let calling_thread = 0;
            calls._events.push(ring.sample(calling_thread, period, EXCLUDE_USER | EXCLUDE_CALLS_OF_USER)?);
            calls.rings.push(ring);
        }
        Ok(calls)
    }

    /// Visits the samples of other processes than this one since the last call: the addresses of a chain of calls, the
    /// innermost first. Those for which a ring had no room are lost.
    pub fn take(&self, visit: &mut dyn FnMut(&[u64])) {
        let own = std::process::id();
        let mut chain = Vec::new();
        for ring in &self.rings {
            ring.take(&mut |data| {
                if let [process_and_thread, count, addresses @ ..] = data
                    && *process_and_thread as u32 != own
                {
                    chain.clear();
                    chain.extend(addresses.iter().take(*count as usize).filter(|address| **address < MARKS));
                    visit(&chain);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cpus_allowed;
    use std::process::Command;

    #[test]
    fn a_program_that_calls_the_kernel_is_seen_there_or_it_is_said_why_not() {
        let processors = cpus_allowed().expect("allowed");
        let calls = match KernelCalls::start(&processors, Duration::from_micros(500)) {
            Ok(calls) => calls,
            Err(error) => return assert!(error.raw_os_error().is_some(), "{error}"),
        };
        let mut reads = Command::new("dd");
        reads.args(["if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000"]);
        assert!(reads.output().expect("dd").status.success());
        let (mut samples, mut deepest) = (0, 0);
        calls.take(&mut |chain| {
            samples += 1;
            deepest = deepest.max(chain.len());
            assert!(chain.iter().all(|address| *address != 0));
        });
        assert!(samples > 10 && deepest > 3, "{samples} samples, of {deepest} calls at most");
        calls.take(&mut |_| unreachable!("nothing has run since"));
    }
}
