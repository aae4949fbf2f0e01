//! Palindromes as in thread bottlenecks (Chen 2020; docs/bibliography.md): readers and workers are threads of their
//! own.
//!
//! 1. In each round, every reader reads a chunk of files, one after the other, and then waits for the other readers.
//! 2. A file that has been read is put into a queue, and wakes one worker.
//! 3. A worker takes a file out of the queue and counts.
//!
//! The engine has no such readers ([67](../../../../docs/decisions/67-readers-of-their-own-are-an-application.md)):
//! this is what it is compared with.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read};
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use gristmill::files::Source;
use gristmill_apps::{Error, Result};
use gristmill_os::usage::Usage;
use rustix::time::{ClockId, clock_gettime};

/// The numbers of threads, and of files that a reader reads in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The readers; at least one.
    pub readers: usize,
    /// The workers; at least one.
    pub workers: usize,
    /// The files of a reader in a round; at least one.
    pub chunk_files: usize,
}

/// The time of a thread from the start of the run to its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Reading files.
    pub reading: Duration,
    /// Counting palindromes.
    pub computing: Duration,
    /// Waiting for other threads.
    pub waiting: Duration,
    /// Running, by the clock of the thread.
    pub running: Duration,
    /// The part of it in the kernel. The kernel looks once in a few milliseconds, so a short run does not tell.
    pub system: Duration,
    /// Waiting for a processor; zero where the kernel does not tell.
    pub runnable: Duration,
}

impl ThreadTime {
    /// Completes the times of the calling thread, which ends now, with those that the kernel counts.
    fn completed(self) -> ThreadTime {
        let Usage { user_us, sys_us, .. } = Usage::of_thread();
        let clock = clock_gettime(ClockId::ThreadCPUTime);
        let running = Duration::new(clock.tv_sec.unsigned_abs(), clock.tv_nsec as u32);
        // run_ns wait_ns slices
        let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let runnable_ns = statistics.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        ThreadTime {
            running,
            system: running.mul_f64(sys_us as f64 / (user_us + sys_us).max(1) as f64),
            runnable: Duration::from_nanos(runnable_ns),
            ..self
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The count of each file, for [`Palindromes::total`](gristmill_apps::Palindromes::total).
    pub files: Vec<u64>,
    /// The times of the readers.
    pub readers: Vec<ThreadTime>,
    /// The times of the workers.
    pub workers: Vec<ThreadTime>,
}

/// The files that have been read and not been counted yet. More than this many bytes make readers wait.
const QUEUE_BYTES: usize = 256 << 20;

#[derive(Default)]
struct Queue {
    files: VecDeque<(usize, Vec<u8>)>,
    bytes: usize,
    /// The readers that have not ended.
    readers: usize,
    failure: Option<Error>,
}

/// The queue, and what its users wait for.
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    emptied: Condvar,
}

impl Rounds {
    /// Counts something in the text of each file, without the line end at its end.
    ///
    /// # Errors
    /// A file cannot be read, or a thread cannot be started.
    pub fn run(&self, in_text: impl Fn(&[u8]) -> u64 + Sync, sources: &[Source]) -> Result<Counted> {
        let in_text = &in_text;
        let queue = Queue { readers: self.readers, ..Queue::default() };
        let shared = Shared { queue: Mutex::new(queue), filled: Condvar::new(), emptied: Condvar::new() };
        let (shared, round) = (&shared, &Barrier::new(self.readers));
        let start = &Start::default();
        let (readers, counted) = thread::scope(|scope| {
            let read = |reader| start_thread(scope, start, move || self.read(reader, sources, shared, round));
            let readers: io::Result<Vec<_>> = (0..self.readers).map(read).collect();
            let workers: io::Result<Vec<_>> =
                (0..self.workers).map(|_| start_thread(scope, start, || count(in_text, shared))).collect();
            start.decide(readers.is_ok() && workers.is_ok());
            let ended = |source| shared.fail(thread_failure(source));
            let readers = readers.map_err(ended).into_iter().flatten();
            let workers = workers.map_err(ended).into_iter().flatten();
            let readers: Vec<_> = readers.filter_map(|thread| thread.join().expect("no reader panics")).collect();
            let workers: Vec<_> = workers.filter_map(|thread| thread.join().expect("no worker panics")).collect();
            (readers, workers)
        });
        if let Some(failure) = shared.queue.lock().unwrap_or_else(PoisonError::into_inner).failure.take() {
            return Err(failure);
        }
        let mut files = vec![0; sources.len()];
        let mut workers = Vec::new();
        for (time, counts) in counted {
            workers.push(time);
            counts.into_iter().for_each(|(file, count)| files[file] = count);
        }
        Ok(Counted { files, readers, workers })
    }

    /// Reads the files of one reader, round by round.
    fn read(&self, reader: usize, sources: &[Source], shared: &Shared, round: &Barrier) -> ThreadTime {
        let mut time = ThreadTime::default();
        for first in (0..sources.len()).step_by(self.readers * self.chunk_files) {
            let begin = (first + reader * self.chunk_files).min(sources.len());
            let end = (begin + self.chunk_files).min(sources.len());
            for (file, source) in sources.iter().enumerate().take(end).skip(begin) {
                let began = Instant::now();
                let read = content(source);
                time.reading += began.elapsed();
                let began = Instant::now();
                shared.put(file, read);
                time.waiting += began.elapsed();
            }
            let began = Instant::now();
            round.wait();
            time.waiting += began.elapsed();
        }
        shared.end_reader();
        time.completed()
    }
}

/// Threads wait here until all of them have been started, or one could not be.
#[derive(Default)]
struct Start {
    is_go: Mutex<Option<bool>>,
    decided: Condvar,
}

impl Start {
    fn decide(&self, is_go: bool) {
        *self.is_go.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_go);
        self.decided.notify_all();
    }

    /// Returns true if all threads have been started.
    fn wait(&self) -> bool {
        let is_go = self.is_go.lock().unwrap_or_else(PoisonError::into_inner);
        *self.decided.wait_while(is_go, |is_go| is_go.is_none()).unwrap_or_else(PoisonError::into_inner) == Some(true)
    }
}

/// Starts a thread that works once all have been started.
fn start_thread<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    start: &'s Start,
    work: impl FnOnce() -> T + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, Option<T>>> {
    thread::Builder::new().spawn_scoped(scope, || start.wait().then(work))
}

fn thread_failure(source: io::Error) -> Error {
    Error::Engine(gristmill::Error::System { what: "cannot start a thread (--readers, --workers)", source })
}

/// Reads a whole file, decompressed.
fn content(source: &Source) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = source.open_text().and_then(|mut file| file.read_to_end(&mut content));
    read.map(|_| content).map_err(|error| Error::read(&source.name, error))
}

/// Counts files until there are no more. Returns their counts.
fn count(in_text: &(impl Fn(&[u8]) -> u64 + Sync), shared: &Shared) -> (ThreadTime, Vec<(usize, u64)>) {
    let (mut time, mut counts) = (ThreadTime::default(), Vec::new());
    loop {
        let began = Instant::now();
        let next = shared.take();
        time.waiting += began.elapsed();
        let Some((file, content)) = next else { return (time.completed(), counts) };
        let began = Instant::now();
        let text = content.strip_suffix(b"\n").unwrap_or(&content);
        let count = in_text(text);
        time.computing += began.elapsed();
        counts.push((file, count));
    }
}

impl Shared {
    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a file into the queue, when there is room.
    fn put(&self, file: usize, read: Result<Vec<u8>>) {
        let content = match read {
            Ok(content) => content,
            Err(failure) => return self.fail(failure),
        };
        let is_full = |queue: &mut Queue| queue.bytes >= QUEUE_BYTES && queue.failure.is_none();
        let mut queue = self.emptied.wait_while(self.queue(), is_full).unwrap_or_else(PoisonError::into_inner);
        queue.bytes += content.len();
        queue.files.push_back((file, content));
        self.filled.notify_one();
    }

    /// Takes a file out of the queue, when there is one. `None` if there will be no more, or something has failed.
    fn take(&self) -> Option<(usize, Vec<u8>)> {
        let is_empty = |queue: &mut Queue| queue.files.is_empty() && queue.readers > 0 && queue.failure.is_none();
        let mut queue = self.filled.wait_while(self.queue(), is_empty).unwrap_or_else(PoisonError::into_inner);
        if queue.failure.is_some() {
            return None;
        }
        let next = queue.files.pop_front()?;
        queue.bytes -= next.1.len();
        self.emptied.notify_all();
        Some(next)
    }

    fn end_reader(&self) {
        self.queue().readers -= 1;
        self.filled.notify_all();
    }

    /// Ends the run with the first failure.
    fn fail(&self, failure: Error) {
        let mut queue = self.queue();
        queue.failure.get_or_insert(failure);
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use gristmill::{Input, Isolation};
    use gristmill_apps::{Algorithm, Palindromes};

    use super::*;

    #[test]
    fn any_numbers_of_readers_workers_and_files_give_the_answer_of_the_engine() {
        let dir = tempfile::tempdir().expect("a folder");
        let texts: [&[u8]; 7] = [b"abba\n", b"", b"aaa", b"a\r\nbcb\r\n", b"\n\n", b"abacaba\nxyzzy", b"aab\n"];
        for (number, text) in texts.iter().enumerate() {
            std::fs::write(dir.path().join(number.to_string()), text).expect("written");
        }
        let program = Palindromes::new(Algorithm::Auto);
        let input = || Input::paths([dir.path()]);
        let (counts, _) = program.job(input()).isolation(Isolation::Thread).run().expect("it runs");
        let expected = Palindromes::total(counts.iter().map(|(_, count)| count));
        let mut input = input();
        let sources = input.sources().expect("they are there");
        for (readers, workers, chunk_files) in [(1, 1, 1), (1, 3, 100), (3, 1, 2), (2, 2, 1), (9, 9, 1)] {
            let rounds = Rounds { readers, workers, chunk_files };
            let counted = rounds.run(|text| program.in_text(text), sources).expect("they can be read");
            assert_eq!(Palindromes::total(counted.files), expected, "{rounds:?}");
            assert_eq!((counted.readers.len(), counted.workers.len()), (readers, workers));
        }
    }

    #[test]
    fn a_file_that_is_gone_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().expect("a folder");
        for number in 0..9 {
            std::fs::write(dir.path().join(number.to_string()), "abba\n").expect("written");
        }
        let mut input = Input::paths([dir.path()]);
        let sources = input.sources().expect("they are there").to_vec();
        std::fs::remove_file(dir.path().join("4")).expect("removed");
        let rounds = Rounds { readers: 2, workers: 2, chunk_files: 1 };
        let failure = rounds.run(|_| 0, &sources).expect_err("one is gone");
        assert!(failure.to_string().contains(&dir.path().join("4").display().to_string()), "{failure}");
    }
}
