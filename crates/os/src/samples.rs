//! Instruction addresses of running programs, sampled by the kernel's task clock (`perf_event_open`).
//!
//! The kernel writes a record into a ring of the processor on which a program runs, each time that the program has used
//! another period of processor time there:
//!
//! ```text
//!  program A --- event (A, processor 0) ---> ring 0 --.
//!            `-- event (A, processor 1) ---> ring 1 --+--> take()
//!  program B --- event (B, processor 0) ---> ring 0 --'
//! ```
//!
//! An event of a thread on all processors has no ring if it includes the processes that the thread starts. Hence an
//! event for each processor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::Pid;

use crate::perf::EXCLUDE_KERNEL;
use crate::perf_ring::Ring;

/// The OS pages of a ring for records: room for 1,024 of them, which is a second at 1 kHz. The kernel asks for a power
/// of two.
const RING_PAGES: usize = 8;
/// Fields of a record: `PERF_SAMPLE_IP`, `PERF_SAMPLE_TID`, `PERF_SAMPLE_ID`.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 6;
/// `PERF_EVENT_IOC_ENABLE`, `PERF_EVENT_IOC_DISABLE`
const SET: [libc::Ioctl; 2] = [0x2400, 0x2401];
/// `PERF_EVENT_IOC_ID`
const GET_ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// A sampled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of the event; see [`Followed::is_of`].
    event: u64,
    /// The process, which may be one that the program has started.
    pub process: i32,
    /// The address in the memory of that process.
    pub address: u64,
}

/// The rings, one for each processor.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
    period: Duration,
}

/// A program that is sampled until this is dropped.
#[derive(Debug)]
pub struct Followed {
    events: Vec<OwnedFd>,
    ids: Vec<u64>,
}

impl Followed {
    /// Returns true if this program, or one that it started, executed the sampled instruction.
    pub fn is_of(&self, sample: &Sample) -> bool {
        self.ids.contains(&sample.event)
    }

    /// Interrupts sampling, or continues it.
    pub fn pause(&self, is_paused: bool) {
        for event in &self.events {
            // SAFETY: these requests take no pointer. They include the events of all that the program has started. They
            // cannot fail on an event.
            unsafe { libc::ioctl(event.as_raw_fd(), SET[usize::from(is_paused)], 0) };
        }
    }
}

impl Sampler {
    /// Prepares to sample on these processors, once for each `period` of processor time.
    ///
    /// # Errors
    ///
    /// `EACCES` or `EPERM` where this user may not, `ENOSYS` where the kernel has none.
    pub fn new(processors: &[usize], period: Duration) -> io::Result<Sampler> {
        let rings =
            processors.iter().map(|processor| Ring::new(*processor, SAMPLE, RING_PAGES)).collect::<io::Result<_>>()?;
        Ok(Sampler { rings, period })
    }

    /// Samples a process that has just begun, with all threads and processes that it starts from now on.
    ///
    /// # Errors
    ///
    /// As [`Sampler::new`], and `ESRCH` if there is no such process.
    pub fn follow(&self, process: Pid) -> io::Result<Followed> {
        let mut followed = Followed { events: Vec::new(), ids: Vec::new() };
        for ring in &self.rings {
            let event = ring.sample(process.as_raw_nonzero().get(), self.period, EXCLUDE_KERNEL)?;
            let mut id = 0_u64;
            // SAFETY: the call writes a u64, to which the pointer leads.
            if unsafe { libc::ioctl(event.as_raw_fd(), GET_ID, &raw mut id) } != 0 {
                return Err(io::Error::last_os_error());
            }
            followed.events.push(event);
            followed.ids.push(id);
        }
        Ok(followed)
    }

    /// Takes the samples since the last call. Those for which a ring had no room are lost.
    pub fn take(&self) -> Vec<Sample> {
        let mut samples = Vec::new();
        for ring in &self.rings {
            ring.take(&mut |data| {
                if let [address, process_and_thread, event] = *data {
                    samples.push(Sample { event, process: process_and_thread as u32 as i32, address });
                }
            });
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cpus_allowed;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Instant;

    #[test]
    fn samples_name_the_program_or_one_that_it_started_or_it_is_said_why_not() {
        let processors = cpus_allowed().expect("allowed");
        let sampler = match Sampler::new(&processors, Duration::from_micros(500)) {
            Ok(sampler) => sampler,
            Err(error) => return assert!(error.raw_os_error().is_some(), "{error}"),
        };
        let busy = "i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done";
        let mut outer = Command::new("sh");
        // It waits first, so that all is sampled that it starts.
        outer.args(["-c", "read line; sh -c \"$1\"; :", "sh", busy]).stdin(Stdio::piped());
        let mut outer = outer.spawn().expect("a shell");
        let mut other = Command::new("sh").args(["-c", busy]).spawn().expect("a shell");
        let (first, second) = match (sampler.follow(Pid::from_child(&outer)), sampler.follow(Pid::from_child(&other))) {
            (Ok(first), Ok(second)) => (first, second),
            (first, second) => panic!("rings, but no events: {first:?} {second:?}"),
        };
        drop(outer.stdin.take());
        assert!(outer.wait().expect("it ends").success() && other.wait().expect("it ends").success());
        let samples = sampler.take();
        let samples_of = |followed: &Followed| -> Vec<Sample> {
            samples.iter().filter(|sample| followed.is_of(sample)).copied().collect()
        };
        let (of_first, of_second) = (samples_of(&first), samples_of(&second));
        assert_eq!(of_first.len() + of_second.len(), samples.len());
        assert!(of_first.iter().any(|sample| sample.process != outer.id() as i32), "{samples:?}");
        assert!(!of_second.is_empty() && of_second.iter().all(|sample| sample.process == other.id() as i32));
        assert!(samples.iter().all(|sample| sample.address != 0));
        assert!(sampler.take().is_empty());
    }

    #[test]
    fn a_program_that_is_paused_gives_no_samples_until_it_goes_on() {
        let Ok(sampler) = Sampler::new(&cpus_allowed().expect("allowed"), Duration::from_micros(200)) else { return };
        // What computes is a process that the program has started.
        let mut busy = Command::new("sh");
        busy.args(["-c", "read line; sh -c 'while :; do :; done' & read line; kill $!"]).stdin(Stdio::piped());
        let mut busy = busy.spawn().expect("a shell");
        let followed = sampler.follow(Pid::from_child(&busy)).expect("rings, so events too");
        busy.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
        let wait_for_samples = || {
            let began = Instant::now();
            while sampler.take().is_empty() {
                assert!(began.elapsed() < Duration::from_secs(60), "no samples");
                sleep(Duration::from_millis(1));
            }
        };
        for _ in 0..3 {
            wait_for_samples();
            followed.pause(true);
            sampler.take();
            sleep(Duration::from_millis(20));
            assert_eq!(sampler.take(), []);
            followed.pause(false);
        }
        drop(busy.stdin.take());
        assert!(busy.wait().expect("it ends").success());
    }

    #[test]
    fn a_process_that_has_ended_cannot_be_followed() {
        let Ok(sampler) = Sampler::new(&[cpus_allowed().expect("allowed")[0]], Duration::from_millis(1)) else {
            return;
        };
        let mut ended = Command::new("true").spawn().expect("a program");
        ended.wait().expect("it ends");
        assert!(sampler.follow(Pid::from_child(&ended)).is_err());
    }
}
