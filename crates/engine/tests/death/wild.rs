//! A map function with a stray pointer.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError};

use crate::common::{self, Random, input_of, random_text};

/// Counts words. Its first call writes where only other processes may write.
struct Wild {
    /// Selects the first (0), middle or last (1) OS page that this process may not write.
    at: f64,
    /// Created by the first call.
    mark: PathBuf,
}

/// Returns the parts of the shared region that this process may read but not write.
fn forbidden() -> Vec<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux says what is mapped");
    // If the limit of file sizes is below the region's size, the region has no file: the kernel then calls it
    // /dev/zero.
    let is_region = |line: &&str| ["/memfd:gristmill ", "/dev/zero "].iter().any(|name| line.contains(name));
    let region = maps.lines().filter(|line| line.contains(" r--s ")).filter(is_region);
    let range = |line: &str| {
        let (start, end) = line.split_once(' ').and_then(|(range, _)| range.split_once('-')).expect("start-end");
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).expect("an address"));
        start..end
    };
    region.map(range).collect()
}

impl MapReduce for Wild {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        if File::create_new(&self.mark).is_ok() {
            let pages: Vec<usize> = forbidden().into_iter().flat_map(|range| range.step_by(4096)).collect();
            let at = pages[(self.at * (pages.len() - 1) as f64) as usize];
            // SAFETY: none. This is what a program with a stray pointer does, and the worker must die of it.
            #[allow(unsafe_code)]
            unsafe {
                std::ptr::with_exposed_provenance_mut::<u64>(at).write_volatile(u64::MAX);
            }
        }
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, 1);
        }
        Ok(())
    }
}

/// Every worker could once overwrite the pages of all others, so a stray pointer in a map function silently gave a
/// wrong result.
pub fn stays_at_home() {
    let text = random_text(&mut Random(5), 60_000, 300, 8, false);
    let expected = common::oracle(&text, true, gristmill::Order::ByKey, usize::MAX);
    let (dir, input) = input_of(&text);
    for (number, at) in [0.0, 0.5, 1.0].into_iter().enumerate() {
        for split in [false, true] {
            let program = Wild { at, mark: dir.path().join(format!("{number} {split}")) };
            let job = Job::new(&program, Input::paths([&input])).split_bytes(2000);
            let job = if split { job.map_workers(2).reduce_workers(2) } else { job.workers(3) };
            let mut pairs = Vec::new();
            let summary = job.run_each(|word, count| pairs.push((word.to_vec(), count)));
            let summary = summary.expect("the task is mapped again");
            assert!(pairs == expected, "{at} {split}");
            assert_eq!(summary.deaths.len(), 1, "{:?}", summary.deaths);
            assert!(summary.deaths[0].contains("SIGSEGV"), "{:?}", summary.deaths);
        }
    }
}
