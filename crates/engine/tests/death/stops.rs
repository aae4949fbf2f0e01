//! Workers that are stopped (SIGSTOP) in jobs with a task timeout, and whole jobs that are suspended.

use std::path::PathBuf;
use std::time::Duration;

use gristmill::internal::Moment;
use gristmill::{Chunk, Emit, Error, Input, Job, MapReduce, ProgramError, Records, SharedOutput};
use rustix::process::Signal;

use crate::common::{self, Case, Places, Random, WATCHDOG, input_of, oracle, random_text};

/// Longer than a task of 2000 bytes takes on a busy machine.
const TIMEOUT: Duration = Duration::from_millis(300);

/// With a task timeout of one second, a job once waited until a stopped worker received SIGCONT: the clock ran only in
/// map functions, not between two tasks, nor while the worker waited for a page, reduced, or delivered.
pub fn at_moments() {
    let (_dir, input) = input_of(&random_text(&mut Random(8), 60_000, 3000, 8, false));
    let anywhere = [
        (Moment::Drawn, 1),
        (Moment::Claimed, 2),
        (Moment::Sent, 3),
        (Moment::Flushed, 1),
        (Moment::Committed, 2),
        (Moment::Received, 5),
        (Moment::Drained, 1),
    ];
    for (case, workers) in [(Case::fused(2), [1, 2]), (Case::split(2, 2), [2, 4])] {
        let case = Case { retries: 9, count: false, ..case };
        let mut stopped = 0;
        for (moment, nth) in anywhere {
            let program = Places { pause: Duration::from_micros(200) };
            let ran = case.run_with(&program, &input, |job| {
                let job = job.task_timeout(TIMEOUT);
                workers.iter().fold(job, |job, worker| job.stop_at(*worker, moment, nth))
            });
            let (pairs, summary) = ran.unwrap_or_else(|why| panic!("{moment:?}: {why}"));
            case.judge(&input, pairs).unwrap_or_else(|why| panic!("{moment:?}: {why}"));
            println!("{moment:?}: {:#?}", summary.deaths);
            stopped += summary.deaths.iter().filter(|death| death.contains("it was stopped (by SIGSTOP")).count();
        }
        assert!(stopped >= 6, "only {stopped} were stopped");
    }
    // The same with reducers that spill.
    let case = Case { count: false, least_memory: true, retries: 9, ..Case::split(2, 2) };
    let ran = case.run_with(&Places { pause: Duration::ZERO }, &input, |job| {
        job.task_timeout(TIMEOUT).stop_at(3, Moment::Received, 20).stop_at(1, Moment::Pushed, 3)
    });
    let (pairs, summary) = ran.expect("both are replaced");
    case.judge(&input, pairs).unwrap_or_else(|why| panic!("{why}: {:#?}", summary.deaths));
    assert!(!summary.deaths.is_empty(), "somebody was stopped");
}

/// Marks each record in an array of a single OS page, whose latch all tasks need.
struct Marks<'o> {
    array: &'o SharedOutput<u32>,
}

impl MapReduce for Marks<'_> {
    type Key = u32;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, _: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_millis(1));
        let first = chunk.offset() as usize;
        self.array.write(|array| (first..first + chunk.bytes().len()).for_each(|record| array[record] += 1));
        Ok(())
    }
}

/// A worker that was stopped while it held the latch of an OS page once made all others wait.
pub fn holding_a_latch() {
    const RECORDS: usize = 300;
    let (_dir, input) = input_of(&[b'r'; RECORDS]);
    for moment in [Moment::Latched, Moment::Merged] {
        for worker in [1, 2] {
            let mut array = SharedOutput::new("marks", RECORDS).expect("mapped");
            let program = Marks { array: &array };
            let job = Job::new(&program, Input::paths([&input])).records(Records::Fixed(1)).split_bytes(4).workers(2);
            let job = job.writes(&array).task_timeout(TIMEOUT).retries(9).stop_at(worker, moment, 1);
            let (_, summary) = job.run().unwrap_or_else(|why| panic!("{moment:?}: {why}"));
            assert!(array.values().iter().all(|marks| *marks == 1), "{moment:?}: {:#?}", summary.deaths);
            let stopped = summary.deaths.iter().filter(|death| death.contains("it was stopped (by SIGSTOP")).count();
            assert!(stopped > 0, "{moment:?}: {:#?}", summary.deaths);
        }
    }
}

fn job_input() -> PathBuf {
    PathBuf::from(std::env::var_os("GRISTMILL_TEST_INPUT").expect("the test names it"))
}

/// Runs to its end while its workers are stopped.
pub fn stopped_job() {
    let input = job_input();
    let case = if std::process::id().is_multiple_of(2) { Case::fused(4) } else { Case::split(3, 2) };
    let case = Case { retries: 50, count: false, take_pause: Duration::from_millis(1), ..case };
    let program = Places { pause: Duration::from_millis(20) };
    let (pairs, summary) = case.run_with(&program, &input, |job| job.task_timeout(TIMEOUT)).expect("all are replaced");
    case.judge(&input, pairs).unwrap_or_else(|why| panic!("{why}: {:#?}", summary.deaths));
    println!("{:#?}", summary.deaths);
}

/// 7 of 12 runs in which a worker was stopped once waited until it was continued.
pub fn from_outside() {
    let (_dir, input) = input_of(&random_text(&mut Random(9), 120_000, 5000, 12, true));
    let mut random = Random(10);
    for _ in 0..2 {
        let mut job = common::start_with(&["--alone", "stopped_job"], &[("GRISTMILL_TEST_INPUT", &input)]);
        let mut left = 6;
        let mut next = std::time::Instant::now() + Duration::from_millis(20);
        let ended = job.wait(WATCHDOG * 2, |job| {
            let workers = job.workers();
            if left > 0 && workers.len() > 1 && std::time::Instant::now() > next {
                left -= 1;
                next += Duration::from_millis(random.below(300));
                common::kill(random.pick(&workers), Signal::STOP);
            }
        });
        let status = ended.unwrap_or_else(|why| panic!("{why}"));
        assert!(status.success(), "{status}: {}", job.printed());
        assert!(job.printed().contains("it was stopped"), "{}", job.printed());
        job.leftovers().expect("nothing is left");
    }
}

/// A job once waited for ever for a reduce function that never returned.
pub fn sleepy_reduce() {
    let (_dir, input) = input_of(b"a b c a");
    let program = Places { pause: Duration::ZERO };
    let job = Job::new(&program, Input::paths([&input])).records(Records::Lines).workers(2);
    let job = job.reduce(|_, _, _| {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    });
    let error = job.task_timeout(TIMEOUT).run().map(|_| ()).expect_err("it never returns");
    assert!(matches!(error, Error::ReduceFailed { attempts: 3, .. }), "{error}");
    assert!(
        error.to_string().contains("died in reduce: it did nothing for longer than the task timeout of 300ms"),
        "{error}"
    );
}

/// Runs a job whose tasks take a third of their time limit.
pub fn suspended_job() {
    let input = job_input();
    let case = Case { count: false, split_bytes: 10_000, ..Case::split(2, 1) };
    let program = Places { pause: Duration::from_millis(500) };
    println!("started");
    let ran = case.run_with(&program, &input, |job| job.task_timeout(Duration::from_millis(1500)));
    let (pairs, summary) = ran.expect("nobody dies");
    assert!(pairs == oracle(&std::fs::read(&input).expect("read"), false, case.order, usize::MAX));
    assert_eq!(summary.deaths, Vec::<String>::new());
}

/// After Ctrl-Z and `fg`, every task once exceeded its time limit.
pub fn suspended() {
    let (_dir, input) = input_of(&random_text(&mut Random(11), 40_000, 5000, 12, false));
    let mut job = common::start_with(&["--alone", "suspended_job"], &[("GRISTMILL_TEST_INPUT", &input)]);
    let mut suspended = false;
    let ended = job.wait(WATCHDOG, |job| {
        let all: Vec<i32> = std::iter::once(job.pid()).chain(job.workers()).collect();
        if !suspended && all.len() == 4 {
            suspended = true;
            std::thread::sleep(Duration::from_millis(250));
            all.iter().for_each(|pid| common::kill(*pid, Signal::STOP));
            std::thread::sleep(Duration::from_millis(2500));
            all.iter().for_each(|pid| common::kill(*pid, Signal::CONT));
        }
    });
    let status = ended.unwrap_or_else(|why| panic!("{why}"));
    assert!(suspended && status.success(), "{status}: {}", job.printed());
}
