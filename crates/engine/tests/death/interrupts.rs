//! Jobs that their caller ends: by a token, by a deadline, by the return value of a callback.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::{CancelToken, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, ProgramError, Records};

/// Counts numbers; each call of the map function takes a millisecond.
struct Slow;

impl MapReduce for Slow {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_millis(1));
        out.emit(chunk.offset(), 1);
        Ok(())
    }
}

/// A job that takes a minute if nothing ends it.
fn long(isolation: Isolation) -> Job<'static, Slow> {
    let input = Input::bytes("numbers", &[0; 8 * 120_000]).expect("in memory");
    let job = Job::new(&Slow, input).records(Records::Fixed(8)).chunk_bytes(8).split_bytes(8 * 60_000).sample(false);
    job.workers(2).isolation(isolation)
}

/// Waits as long as a job may take that should end at once. The limit is for a hang, not for a speed.
fn ends_soon<T>(what: &str, job: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = job();
    assert!(began.elapsed() < Duration::from_secs(20), "{what} took {:?}", began.elapsed());
    outcome
}

pub fn tokens() {
    // Workers are processes, and this process has one thread: the progress callback cancels.
    for isolation in [Isolation::Process, Isolation::Thread] {
        let token = CancelToken::new().expect("made");
        let canceller = token.clone();
        let job = long(isolation).cancel_by(&token).on_progress(move |_| canceller.cancel());
        let error = ends_soon("a cancelled job", || job.run()).map(drop).expect_err("cancelled");
        assert!(matches!(error, Error::Cancelled), "{error}");
        // A token that was cancelled before is seen before anything is read.
        let error = ends_soon("a job that never began", || long(isolation).cancel_by(&token).run());
        assert!(matches!(error, Err(Error::Cancelled)));
    }
}

pub fn tokens_of_threads() {
    let token = CancelToken::new().expect("made");
    let canceller = token.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    // No progress and no deadline: only the token wakes the coordinator.
    let outcome = ends_soon("a job cancelled by a thread", || long(Isolation::Thread).cancel_by(&token).run());
    assert!(matches!(outcome, Err(Error::Cancelled)));
    thread.join().expect("it did not panic");
}

pub fn progress() {
    for isolation in [Isolation::Process, Isolation::Thread] {
        let job = long(isolation).on_progress(|now| match now.done_bytes {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        let outcome = ends_soon("a job that its progress stopped", || job.run());
        assert!(matches!(outcome, Err(Error::Cancelled)));
    }
}

pub fn deadlines() {
    let limit = Duration::from_millis(100);
    for isolation in [Isolation::Process, Isolation::Thread] {
        let error = ends_soon("a job with a deadline", || long(isolation).deadline(limit).run());
        let error = error.map(drop).expect_err("it is late").to_string();
        assert_eq!(error, "the job did not end within its deadline of 100ms (Job::deadline)");
        let steps = long(isolation).split_bytes(8 * 100).deadline(limit).iterate(&[], |_| Next::Input);
        assert!(matches!(steps, Err(Error::Deadline { .. })));
    }
    // In time.
    let job = Job::new(&Slow, Input::bytes("numbers", &[0; 80]).expect("in memory")).records(Records::Fixed(8));
    let (counts, _) = job.workers(2).deadline(Duration::from_secs(60)).run().expect("in time");
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 1);
}

/// A receiver that takes its time is interrupted between two pairs.
pub fn receivers() {
    let input = Input::bytes("numbers", &[0; 8 * 500]).expect("in memory");
    let job = Job::new(&Slow, input).records(Records::Fixed(8)).chunk_bytes(8).workers(2).map_at_once(2).sample(false);
    let mut visited = 0;
    let outcome = job.deadline(Duration::from_secs(1)).run_each(|_, _| {
        visited += 1;
        std::thread::sleep(Duration::from_millis(10));
    });
    assert!(matches!(outcome, Err(Error::Deadline { .. })), "{visited} pairs: {outcome:?}");
    assert!(visited < 500, "{visited}");
}

/// Stages that a job had saved when its deadline ended it are not mapped again.
pub fn checkpoints() {
    let (dir, _) = crate::common::input_of(b"");
    let input = dir.path().join("numbers");
    std::fs::write(&input, [0; 8 * 2000]).expect("written");
    let job = || {
        let job = Job::new(&Slow, Input::paths([&input])).records(Records::Fixed(8)).chunk_bytes(8).split_bytes(160);
        job.workers(2).sample(false).checkpoint(dir.path().join("saved"), "slow", Duration::from_millis(1))
    };
    let outcome = job().deadline(Duration::from_millis(700)).run();
    assert!(matches!(outcome, Err(Error::Deadline { .. })));
    let (counts, summary) = job().run().expect("it continues");
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 2000);
    assert!(summary.resumed_tasks > 0);
    assert_eq!(summary.tasks + summary.resumed_tasks, 100);
}

/// A job that reads a pipe that nobody writes to, or closes, once waited for ever.
pub fn pipes() {
    let mut silent = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn().expect("started");
    let pipe = silent.stdout.take().expect("piped");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    let job = Job::new(&Slow, Input::paths([&path])).deadline(Duration::from_millis(100));
    let outcome = ends_soon("a job that reads a silent pipe", || job.run());
    assert!(matches!(outcome, Err(Error::Deadline { .. })));
    silent.kill().and_then(|()| silent.wait()).expect("ended");
    // A pipe that has something and then ends is read as before.
    let mut talks = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    talks.stdin.take().expect("piped").write_all(b"one\ntwo\n").expect("written");
    let pipe = talks.stdout.take().expect("piped");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    let (_, summary) = Job::new(&Slow, Input::paths([&path])).deadline(Duration::from_secs(60)).run().expect("it ends");
    assert_eq!(summary.input_bytes, 8);
    talks.wait().expect("ended");
}

/// A job that opened a FIFO without a writer waited for one for ever, whatever its deadline said.
pub fn fifos() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo is there").success());
    let limit = Duration::from_millis(100);
    for skip in [0, 9] {
        for read_once in [false, true] {
            let input = || Input::paths([&path]).read_once(read_once).skip_bad_files(skip);
            let outcome = ends_soon("a job without a writer", || Job::new(&Slow, input()).deadline(limit).run());
            assert!(matches!(outcome, Err(Error::Deadline { .. })), "{skip} {read_once}");
            let looked = ends_soon("a look", || input().deadline(limit, Instant::now()).look().map(drop));
            assert!(matches!(looked, Err(Error::Deadline { .. })), "{skip} {read_once}");
        }
    }
    // A token ends the wait, too.
    let token = CancelToken::new().expect("made");
    let canceller = token.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    let job = Job::new(&Slow, Input::paths([&path])).isolation(Isolation::Thread).cancel_by(&token);
    assert!(matches!(ends_soon("a cancelled job", || job.run()), Err(Error::Cancelled)));
    thread.join().expect("no panic");
    // A writer that comes late is read to its end, with a deadline and without.
    for limit in [None, Some(Duration::from_secs(60))] {
        let write = "sleep 0.1; (echo one; sleep 0.1; echo two) > \"$0\"";
        let mut writer = Command::new("sh").args(["-c", write]).arg(&path).spawn().expect("started");
        let job = Job::new(&Slow, Input::paths([&path]));
        let (_, summary) = limit.into_iter().fold(job, Job::deadline).run().expect("it ends");
        assert_eq!(summary.input_bytes, 8, "{limit:?}");
        writer.wait().expect("ended");
    }
    // What the search took is taken from the job.
    let input = Input::bytes("numbers", &[0; 8 * 60_000]).expect("in memory").deadline(limit, Instant::now());
    let job = Job::new(&Slow, input).records(Records::Fixed(8)).chunk_bytes(8).sample(false).deadline(limit * 600);
    let outcome = ends_soon("a job over an input with a deadline", || job.run());
    assert!(matches!(outcome, Err(Error::Deadline { limit: told }) if told == limit));
}
