//! A process with threads runs jobs with isolated workers through a starter.

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Random, random_text};
use gristmill::internal::Moment;
use gristmill::{Bytes, CancelToken, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Starter};

fn main() {
    common::run(
        &[
            ("calls_from_several_threads_each_get_their_own_answers", threads),
            ("the_death_of_one_call_is_an_error_of_that_call_alone", deaths),
            ("a_call_that_is_dropped_cancelled_or_late_leaves_no_process", ends),
            ("a_starter_that_has_died_is_a_clear_error", died),
            ("a_starter_is_refused_where_threads_run", refused),
            ("a_job_may_be_made_in_one_thread_and_run_in_another", sent),
        ],
        &[],
    );
}

/// Counts words. Is killed, panics or fails when a word says so.
struct Words;

impl MapReduce for Words {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).for_each(|word| out.emit(word, 1));
        Ok(())
    }
}

type Counts = BTreeMap<Vec<u8>, u64>;

/// Makes a starter that counts words with processes as workers, one of which dies. The request is a command and a text.
fn starter() -> Starter<(u8, Bytes), (Bytes, u64)> {
    Starter::new(|(command, text): (u8, &[u8]), answers| {
        match command {
            b'p' => panic!("as it was asked to"),
            b'a' => std::process::abort(),
            b'e' => return Err(ProgramError::new("no such text").code(7)),
            b's' => std::thread::sleep(Duration::from_secs(600)),
            _ => {}
        }
        let job = Job::new(&Words, Input::bytes("text", text)?).isolation(Isolation::Process).workers(3);
        let job = (1..=3).fold(job.split_bytes(2_000), |job, worker| job.die_at(worker, Moment::Claimed, 1));
        let (counts, summary) = job.run()?;
        assert!(!summary.deaths.is_empty(), "the workers are processes");
        counts.iter().for_each(|pair| answers.push(pair));
        Ok(())
    })
    .expect("this process has one thread")
}

fn counts(starter: &Starter<(u8, Bytes), (Bytes, u64)>, text: &[u8]) -> Counts {
    starter.call((b'c', text)).expect("called").collect::<gristmill::Result<Counts>>().expect("served")
}

fn expected(text: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_vec()).or_default() += 1;
    }
    counts
}

fn threads() {
    let starter = starter();
    let served = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (starter, served) = (&starter, &served);
            scope.spawn(move || {
                for round in 0..4 {
                    let text = random_text(&mut Random(seed * 10 + round), 60_000, 3_000, 12, false);
                    assert!(counts(starter, &text) == expected(&text), "{seed} {round}");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(served.into_inner(), 24);
}

fn deaths() {
    let starter = starter();
    let other = std::thread::scope(|scope| {
        let other = scope.spawn(|| counts(&starter, &b"a b a ".repeat(20_000)));
        let error = |command: u8| {
            let mut call = starter.call((command, b"")).expect("called");
            let error = call.next().expect("an error").expect_err("no answer");
            assert!(call.next().is_none(), "after an error there is nothing");
            error
        };
        assert_eq!(
            error(b'p').to_string(),
            "the process that served a call: it panicked; standard error has the message"
        );
        let aborted = error(b'a').to_string();
        assert!(aborted.starts_with("the process that served a call: it died: signal 6"), "{aborted}");
        let Error::Program { why, code, .. } = error(b'e') else { panic!("an error of the program") };
        assert_eq!((&why[..], code), ("no such text", Some(7)));
        other.join().expect("it does not panic")
    });
    assert_eq!(other, Counts::from([(b"a".to_vec(), 40_000), (b"b".to_vec(), 20_000)]));
}

/// Returns the processes below this one, itself not included.
fn processes_below(pid: u32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let pids = children.split_whitespace().map(|pid| pid.parse().expect("a number"));
    pids.map(|pid| 1 + processes_below(pid)).sum()
}

fn ends() {
    let starter = starter();
    let here = std::process::id();
    assert_eq!(processes_below(here), 1, "the starter");
    let waits_for = |processes: usize| {
        let began = Instant::now();
        while processes_below(here) != processes {
            assert!(began.elapsed() < Duration::from_secs(20), "{} processes", processes_below(here));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let call = starter.call((b's', b"")).expect("called");
    waits_for(2);
    drop(call);
    waits_for(1);
    let token = CancelToken::new().expect("made");
    let canceller = token.clone();
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            canceller.cancel();
        });
        starter.call((b's', b"")).expect("called").cancel_by(&token).next()
    });
    assert!(matches!(ended, Some(Err(Error::Cancelled))));
    let late = starter.call((b's', b"")).expect("called").deadline(Duration::from_millis(20)).next();
    assert!(matches!(late, Some(Err(Error::Deadline { .. }))));
    waits_for(1);
    // Only some of the answers are taken.
    let text = random_text(&mut Random(1), 400_000, 1 << 40, 12, false);
    assert!(starter.call((b'c', &text)).expect("called").take(3).all(|answer| answer.is_ok()));
    waits_for(1);
    drop(starter);
    waits_for(0);
}

fn died() {
    let starter = starter();
    let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id()));
    let pid: i32 = children.expect("read").trim().parse().expect("one child");
    let mut call = starter.call((b's', b"")).expect("called");
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).expect("not 0"), rustix::process::Signal::KILL)
        .expect("killed");
    let message = "the starter, which must run as long as it is called, has died";
    assert_eq!(call.next().expect("an error").expect_err("no answer").to_string(), message);
    let again = starter.call((b'c', b"")).and_then(|mut call| call.next().expect("an error"));
    assert_eq!(again.expect_err("nobody serves it").to_string(), message);
}

fn sent() {
    let mut news = 0;
    let job = Job::new(&Words, Input::bytes("text", b"a b a").expect("made")).isolation(Isolation::Thread);
    let job = job.on_progress(|_| news += 1).reduce(|word, values, emit| {
        values.owned().for_each(|count| emit(word, count + 1));
        Ok(())
    });
    let ran = std::thread::scope(|scope| scope.spawn(|| job.run()).join()).expect("it does not panic");
    assert_eq!(ran.expect("it runs").0.get(b"a"), Some(3));
}

fn refused() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv());
    let made = Starter::<Bytes, Bytes>::new(|_, _| Ok(()));
    assert!(matches!(made.map(drop), Err(Error::ThreadsRunning { threads: 2 })));
    drop(sender);
    assert!(thread.join().expect("it does not panic").is_err());
}
