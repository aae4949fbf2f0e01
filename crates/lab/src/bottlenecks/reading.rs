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

/// Where the time of readers goes, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// In user mode.
    pub user: f64,
    /// In the kernel: the files are opened and copied there.
    pub system: f64,
    /// Ready to run, without a processor.
    pub runnable: f64,
    /// Asleep for other threads: the end of a round, or room in the queue.
    pub others: f64,
    /// Asleep otherwise: for a disk, or for a lock in the kernel.
    pub kernel: f64,
}

impl Read {
    /// Returns the shares of the time of all readers together.
    pub fn shares(&self) -> Shares {
        let sum = |of: fn(&ThreadTime) -> Duration| self.readers.iter().map(of).sum::<Duration>().as_secs_f64();
        let all = sum(|time| time.reading + time.waiting + time.computing);
        if all == 0.0 {
            return Shares::default();
        }
        let [user, system, runnable, waiting] =
            [sum(|time| time.user), sum(|time| time.system), sum(|time| time.runnable), sum(|time| time.waiting)];
        // The kernel also counts the time before the thread's first look at the clock.
        let runnable = runnable.min((all - user - system).max(0.0));
        let asleep = (all - user - system - runnable).max(0.0);
        // A thread that waits for others may be ready to run for a part of that time.
        let others = waiting.min(asleep);
        let [user, system, runnable, others, kernel] =
            [user, system, runnable, others, asleep - others].map(|time| time / all);
        Shares { user, system, runnable, others, kernel }
    }

    /// Returns the share of the readers' time in which they wait for other threads.
    pub fn waiting(&self) -> f64 {
        self.shares().others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_readers_time_add_up() {
        let ms = Duration::from_millis;
        let time = |reading, waiting, user, system, runnable| ThreadTime {
            reading: ms(reading),
            waiting: ms(waiting),
            computing: ms(0),
            user: ms(user),
            system: ms(system),
            runnable: ms(runnable),
        };
        let read = Read { ms: 100.0, readers: vec![time(80, 20, 10, 40, 5), time(90, 10, 10, 50, 5)] };
        let Shares { user, system, runnable, others, kernel } = read.shares();
        let percents = [user, system, runnable, others, kernel].map(|share| (share * 100.0).round());
        assert_eq!(percents, [10.0, 45.0, 5.0, 15.0, 25.0]);
        assert_eq!(Read { ms: 1.0, readers: vec![ThreadTime::default()] }.shares(), Shares::default());
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
