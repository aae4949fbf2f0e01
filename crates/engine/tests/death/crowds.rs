//! Map functions that need more memory than the machine has for several of them.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use gristmill::{Chunk, Emit, Error, Input, Job, MapReduce, ProgramError, Records};
use gristmill_os::allocations::REFUSED;

const NUMBERS: u64 = 200;

/// Emits each number. Its workers die for lack of memory when several map at the same time; or always.
struct Hungry {
    lock: PathBuf,
    dies_alone: bool,
}

impl MapReduce for Hungry {
    type Key = u64;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        let lock = File::open(&self.lock).expect("it was made");
        if self.dies_alone || lock.try_lock().is_err() {
            std::process::exit(REFUSED);
        }
        std::thread::sleep(Duration::from_millis(1));
        chunk.bytes().as_chunks::<8>().0.iter().for_each(|number| out.emit(u64::from_le_bytes(*number), 1));
        Ok(())
    }
}

fn job<'j>(program: &'j Hungry, workers: usize) -> Job<'j, Hungry> {
    let numbers: Vec<u8> = (0..NUMBERS).flat_map(u64::to_le_bytes).collect();
    let input = Input::bytes("numbers", &numbers).expect("in memory").records(Records::Fixed(8));
    Job::new(program, input).split_bytes(80).workers(workers).map_at_once(workers)
}

/// Workers died one after the other until the job failed, though each task alone had memory enough.
pub fn company() {
    let lock = tempfile::NamedTempFile::new().expect("made");
    let program = Hungry { lock: lock.path().to_owned(), dies_alone: false };
    for workers in [2, 3, 8] {
        let mut told = Vec::new();
        let job = job(&program, workers).retries(0).on_news(|news| told.push(news.to_owned()));
        let (pairs, summary) = job.run().expect("tasks are mapped one by one in the end");
        assert!(pairs.iter().eq((0..NUMBERS).map(|number| (number, 1))));
        assert!(!summary.deaths.is_empty());
        drop(pairs);
        let says_it = |news: &&String| news.ends_with("From now on, one worker maps at a time");
        assert_eq!(told.iter().filter(says_it).count(), 1, "{told:?}");
    }
}

pub fn alone() {
    let lock = tempfile::NamedTempFile::new().expect("made");
    let program = Hungry { lock: lock.path().to_owned(), dies_alone: true };
    for workers in [1, 4] {
        let error = job(&program, workers).retries(1).run().err().expect("it always dies");
        assert!(matches!(error, Error::MemoryRefused { attempts: 2, .. }), "{error}");
    }
}
