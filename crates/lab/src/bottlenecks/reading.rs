//! Files read by threads that do nothing else, and where the time of these threads goes.

use std::time::{Duration, Instant};

use gristmill::Input;
use gristmill_cli::Failure;
use gristmill_os::machine::os_page_bytes;

use super::files::{Files, Size};
use super::rounds::{Rounds, ThreadTime};
use crate::page::Turns;

/// Readers, and the files that each of them reads in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readers {
    pub readers: u64,
    /// All in one round without.
    pub chunk_files: Option<u64>,
}

/// A run: its time, and the times of its readers.
pub struct Read {
    pub ms: f64,
    pub readers: Vec<ThreadTime>,
}

/// Reads files of this size in several ways, in turn. One thread takes what was read, looks at a byte of each OS page,
/// and throws it away.
pub fn measure(files: &mut Files, size: Size, ways: &[Readers], rounds: u32) -> Result<Turns<Read>, Failure> {
    let folder = files.make(size)?;
    let mut input = Input::paths([folder]);
    let sources = input.sources()?;
    let step = os_page_bytes();
    let look = |text: &[u8]| text.iter().step_by(step).fold(0_u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
    Turns::take(ways.len(), rounds, |way| {
        let Readers { readers, chunk_files } = ways[way];
        let readers = readers as usize;
        let all = sources.len().div_ceil(readers);
        let chunk_files = chunk_files.map_or(all, |files| files as usize).max(1);
        let began = Instant::now();
        let counted = Rounds { readers, workers: 1, chunk_files }.run(look, sources)?;
        Ok(Read { ms: began.elapsed().as_secs_f64() * 1e3, readers: counted.readers })
    })
}

/// Where the time of readers goes, as shares of it. All but `system` add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Running.
    pub running: f64,
    /// The part of it in the kernel, where files are opened and copied; `None` if the readers run too short to tell.
    pub system: Option<f64>,
    /// Ready to run, without a processor.
    pub runnable: f64,
    /// Asleep for other threads: the end of a round, or room in the queue.
    pub others: f64,
    /// Asleep otherwise: for a disk, or for a lock in the kernel.
    pub kernel: f64,
}

/// The least time that a reader must run for its part in the kernel to be told: the kernel looks every 1 to 10 ms.
pub const RUNNING_MIN: Duration = Duration::from_millis(100);

impl Shares {
    /// Returns the shares of the time of all readers of these runs together.
    pub fn of(runs: &[Read]) -> Shares {
        let readers = || runs.iter().flat_map(|run| &run.readers);
        let sum = |of: fn(&ThreadTime) -> Duration| readers().map(of).sum::<Duration>().as_secs_f64();
        let all = sum(|time| time.reading + time.waiting + time.computing);
        if all == 0.0 {
            return Shares::default();
        }
        // The kernel also counts the time before the thread's first look at the clock.
        let running = sum(|time| time.running).min(all);
        let runnable = sum(|time| time.runnable).min(all - running);
        let asleep = all - running - runnable;
        // A thread that waits for others may be ready to run for a part of that time.
        let others = sum(|time| time.waiting).min(asleep);
        let is_long = readers().all(|time| time.running >= RUNNING_MIN);
        let system = is_long.then(|| sum(|time| time.system).min(running) / all);
        let [running, runnable, others, kernel] = [running, runnable, others, asleep - others].map(|time| time / all);
        Shares { running, system, runnable, others, kernel }
    }
}

impl Read {
    /// Returns the shares of the time of the readers of this run.
    pub fn shares(&self) -> Shares {
        Shares::of(std::slice::from_ref(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_readers_time_add_up() {
        let ms = Duration::from_millis;
        let time = |reading, waiting, running, system, runnable| ThreadTime {
            reading: ms(reading),
            waiting: ms(waiting),
            computing: ms(0),
            running: ms(running),
            system: ms(system),
            runnable: ms(runnable),
        };
        let read = Read { ms: 1000.0, readers: vec![time(800, 200, 500, 400, 50), time(900, 100, 600, 500, 50)] };
        let Shares { running, system, runnable, others, kernel } = read.shares();
        let system = system.expect("both readers run for long");
        let percents = [running, system, runnable, others, kernel].map(|share| (share * 100.0).round());
        assert_eq!(percents, [55.0, 45.0, 5.0, 15.0, 25.0]);
        assert_eq!(Read { ms: 1.0, readers: vec![ThreadTime::default()] }.shares(), Shares::default());
    }

    #[test]
    fn a_short_run_does_not_tell_the_kernel_from_the_user() {
        let ms = Duration::from_millis;
        let reader = |running| ThreadTime { reading: ms(200), running, system: running / 2, ..ThreadTime::default() };
        let shares = |running| Read { ms: 200.0, readers: vec![reader(running), reader(ms(150))] }.shares().system;
        assert!(shares(RUNNING_MIN).is_some() && shares(RUNNING_MIN - ms(1)).is_none());
    }

    #[test]
    fn every_way_reads_all_files() {
        let mut files = Files::new(Some(1 << 20)).expect("a folder");
        let ways = [(1, None), (3, None), (2, Some(1))].map(|(readers, chunk_files)| Readers { readers, chunk_files });
        let turns = measure(&mut files, Size { files: 10, characters: 100 }, &ways, 1).expect("read");
        assert_eq!(ways.map(|way| way.readers), [0, 1, 2].map(|way| turns.of(way)[0].readers.len() as u64));
        assert!(turns.of(2)[0].readers.iter().all(|time| time.reading > Duration::ZERO));
    }
}
