//! Workers that die at chosen moments, map functions that kill, coordinators that are killed: the result is that of ten
//! sequential lines, or there is one clear error, and nothing is left behind.

#[path = "death/callers.rs"]
mod callers;
mod common;
#[path = "death/crowds.rs"]
mod crowds;
#[path = "death/interrupts.rs"]
mod interrupts;
#[path = "death/redo.rs"]
mod redo;
#[path = "death/stops.rs"]
mod stops;
#[path = "death/wild.rs"]
mod wild;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Case, Count, Places, Random, die_at_every, input_of, random_text};
use gristmill::internal::{MOMENTS, Moment};
use gristmill::options::{Buffer, Combining, Exchange, PagePolicy};
use gristmill::{Bytes, Chunk, Emit, Error, Input, Job, MapReduce, Order, ProgramError, Records};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

fn main() {
    common::run(
        &[
            ("a_fused_worker_killed_at_any_moment_changes_nothing", fused_worker),
            ("a_map_worker_killed_at_any_moment_changes_nothing", map_worker),
            ("a_reduce_worker_killed_at_any_moment_changes_nothing", reduce_worker),
            ("deaths_change_nothing_with_every_pair_kept", every_pair),
            ("deaths_change_nothing_behind_a_barrier", barrier),
            ("deaths_change_nothing_where_each_node_reduces_its_own_pairs", by_node),
            ("deaths_change_nothing_with_array_buffers_and_late_combining", array_buffers),
            ("deaths_change_nothing_in_an_unordered_result", unordered),
            ("deaths_change_nothing_in_the_top_five", top),
            ("deaths_change_nothing_with_pairs_larger_than_a_page", giants),
            ("deaths_change_nothing_with_fresh_pages", fresh_pages),
            ("replacements_may_die_too", replacements),
            ("all_workers_may_die_at_once", all_at_once),
            ("a_reducer_may_die_while_others_wait_to_deliver", large_results),
            ("a_replacement_with_differently_rounded_sums_keeps_each_key_once", rounded_results),
            ("a_job_without_input_survives_a_death", empty),
            ("too_many_deaths_are_an_error", spares),
            ("a_map_function_that_always_dies_is_one_clear_error", always),
            ("a_map_function_that_dies_once_is_retried", once),
            ("waiting_for_pages_does_not_count_as_task_time", waiting_task),
            ("a_thread_that_ends_slowly_is_noticed", slow_end),
            ("a_job_whose_workers_run_out_of_memory_maps_with_fewer_at_once", crowds::company),
            ("a_task_that_alone_has_too_little_memory_is_one_clear_error", crowds::alone),
            ("a_combine_function_that_panics_is_one_clear_error", combine_panics),
            ("a_killed_coordinator_leaves_nothing_behind", coordinator),
            ("few_file_descriptors_are_enough_or_an_error", few_descriptors),
            ("a_worker_stopped_at_any_moment_is_ended_by_the_task_timeout", stops::at_moments),
            ("a_job_ends_although_its_workers_are_stopped_in_turn", stops::from_outside),
            ("a_stopped_worker_that_holds_a_latch_is_replaced", stops::holding_a_latch),
            ("a_reduce_function_that_only_sleeps_is_ended_by_the_task_timeout", stops::sleepy_reduce),
            ("a_suspended_job_continues_without_deaths", stops::suspended),
            ("a_panic_in_the_caller_ends_the_job_and_reaches_the_caller", callers::panics),
            ("a_cancelled_job_ends_soon", interrupts::tokens),
            ("a_job_is_cancelled_from_another_thread", interrupts::tokens_of_threads),
            ("a_progress_callback_stops_its_job", interrupts::progress),
            ("a_job_ends_at_its_deadline", interrupts::deadlines),
            ("a_slow_receiver_is_interrupted_between_two_pairs", interrupts::receivers),
            ("a_job_ended_by_its_deadline_continues_from_its_checkpoint", interrupts::checkpoints),
            ("a_job_that_waits_for_a_pipe_ends_at_its_deadline", interrupts::pipes),
            ("a_job_that_waits_for_the_writer_of_a_fifo_ends_at_its_deadline", interrupts::fifos),
            ("a_stray_pointer_into_foreign_pages_kills_only_its_worker", wild::stays_at_home),
            ("random_keys_lose_and_double_no_record", redo::random_keys),
            ("random_keys_lose_and_double_no_record_in_threads", redo::random_keys_in_threads),
            ("delivered_pairs_are_never_mixed_with_those_of_another_call", redo::what_was_delivered),
            ("a_job_starts_over_three_times_at_most", redo::bounded),
            ("a_step_contains_one_call_for_each_record", redo::steps),
            ("a_written_result_contains_one_call_for_each_record", redo::written),
            ("a_record_set_aside_is_counted_by_no_attempt", redo::set_aside),
            ("a_crash_costs_at_most_a_tenth_of_a_second_of_tasks", redo::costs),
            ("a_shared_output_contains_one_call_for_each_record", redo::arrays),
            ("a_stage_of_a_checkpoint_contains_one_call_for_each_record", redo::checkpoints),
        ],
        &[("long_job", long_job), ("stopped_job", stops::stopped_job), ("suspended_job", stops::suspended_job)],
    );
}

fn small_text() -> Vec<u8> {
    random_text(&mut Random(1), 12_000, 300, 8, false)
}

/// Kills a worker at every moment; the kinds of moments in `comes_to` must really occur.
fn die_at_all(case: &Case, worker: usize, comes_to: &[Moment]) {
    let (_dir, input) = input_of(&small_text());
    let case = Case { map_pause: Duration::from_micros(300), ..case.clone() };
    for moment in MOMENTS {
        let died = die_at_every(&case, &input, worker, moment, |nth| nth + 1);
        println!("worker {worker}: {died} deaths at {moment:?}");
        assert!(died > 0 || !comes_to.contains(&moment), "worker {worker} never died at {moment:?}");
    }
}

const MAPS: [Moment; 5] = [Moment::Drawn, Moment::Claimed, Moment::Sent, Moment::Flushed, Moment::Committed];
const REDUCES: [Moment; 3] = [Moment::Received, Moment::Drained, Moment::Sent];

fn fused_worker() {
    die_at_all(&Case::fused(2), 1, &[MAPS.as_slice(), &REDUCES].concat());
    die_at_all(&Case::fused(1), 1, &[MAPS.as_slice(), &REDUCES].concat());
}

fn map_worker() {
    die_at_all(&Case::split(2, 2), 1, &MAPS);
}

fn reduce_worker() {
    die_at_all(&Case::split(2, 2), 3, &REDUCES);
}

/// Kills workers at the most important moments, for both topologies and both roles.
fn variants(change: impl Fn(Case) -> Case, text: &[u8]) {
    let (_dir, input) = input_of(text);
    for (case, worker) in [(Case::fused(2), 2), (Case::split(2, 2), 2), (Case::split(2, 2), 4)] {
        let case = Case { map_pause: Duration::from_micros(300), ..change(case) };
        for moment in [Moment::Sent, Moment::Received, Moment::Committed] {
            let died = die_at_every(&case, &input, worker, moment, |nth| nth + 1);
            println!("worker {worker}: {died} deaths at {moment:?}");
        }
    }
}

fn every_pair() {
    variants(|case| Case { count: false, ..case }, &small_text());
}

fn barrier() {
    variants(|case| Case { exchange: Exchange::Barrier, ..case }, &small_text());
}

fn by_node() {
    variants(|case| Case { by_node: true, ..case }, &small_text());
    let (_dir, input) = input_of(&small_text());
    // Both nodes have lost partitions, and a replacement maps tasks of the other node's share.
    for moment in [Moment::Received, Moment::Drained, Moment::Sent] {
        let case = Case { by_node: true, map_pause: Duration::from_micros(300), ..Case::fused(4) };
        for nth in [1, 3, 9] {
            let fates = [1, 2].map(|worker| (worker, moment, nth));
            let summary = case.check(&input, &fates).unwrap_or_else(|why| panic!("{moment:?} {nth}: {why}"));
            assert_eq!(summary.node_reads.len(), 4, "it is counted what each node reads of each");
        }
    }
}

fn array_buffers() {
    variants(|case| Case { buffer: Buffer::Array, combine: Combining::Off, ..case }, &small_text());
}

fn unordered() {
    variants(|case| Case { order: Order::Unordered, ..case }, &small_text());
}

fn top() {
    variants(|case| Case { limit: 5, ..case }, &small_text());
}

fn giants() {
    let text = random_text(&mut Random(2), 60_000, 300, 8, true);
    variants(|case| Case { split_bytes: 10_000, ..case }, &text);
}

fn fresh_pages() {
    variants(|case| Case { pages: PagePolicy::Fresh, count: false, ..case }, &small_text());
}

fn replacements() {
    let (_dir, input) = input_of(&small_text());
    let mut died = 0;
    for (case, workers) in [(Case::fused(2), 1..7), (Case::split(2, 2), 3..9)] {
        for moment in [Moment::Received, Moment::Sent, Moment::Drained, Moment::Committed, Moment::Drawn] {
            for nth in [1, 2, 5, 9] {
                let fates: Vec<_> = workers.clone().map(|worker| (worker, moment, nth)).collect();
                let summary = case.check(&input, &fates).unwrap_or_else(|why| panic!("{moment:?} {nth}: {why}"));
                died += summary.deaths.len();
            }
        }
    }
    assert!(died > 80, "only {died} died");
}

fn all_at_once() {
    let (_dir, input) = input_of(&small_text());
    for case in [Case::fused(4), Case::split(2, 2)] {
        let case = Case { map_pause: Duration::from_millis(1), ..case };
        for moment in MOMENTS {
            for nth in 1..4 {
                let fates = [1, 2, 3, 4].map(|worker| (worker, moment, nth));
                case.check(&input, &fates).unwrap_or_else(|why| panic!("{moment:?} {nth}: {why}"));
            }
        }
    }
}

/// The result is larger than all pages of a worker: a worker that delivers waits for the coordinator to take pages,
/// while the coordinator waits for the stream of the dead one.
fn large_results() {
    let text = random_text(&mut Random(3), 3_000_000, 1 << 40, 60, false);
    let (_dir, input) = input_of(&text);
    let mut died = 0;
    for (case, worker) in [(Case::fused(2), 1), (Case::split(2, 2), 3), (Case::split(2, 2), 4)] {
        for order in [Order::ByKey, Order::Unordered] {
            let case = Case { count: false, order, split_bytes: 300_000, ..case.clone() };
            for nth in [1, 2, 100, 250, 500, 600, 700, 800] {
                let summary =
                    case.check(&input, &[(worker, Moment::Sent, nth)]).unwrap_or_else(|why| panic!("{nth}: {why}"));
                died += summary.deaths.len();
            }
        }
    }
    assert!(died > 20, "only {died} died");
}

/// Sums that strongly depend on the order of their parts.
struct Rounded;

impl MapReduce for Rounded {
    type Key = u32;
    type Value = f64;

    fn combiner(&self) -> Option<impl Fn(f64, f64) -> f64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, f64>) -> Result<(), ProgramError> {
        for at in 0..chunk.bytes().len() as u64 {
            let number = (chunk.offset() + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            out.emit(number as u32 % ROUNDED_KEYS, [1e17, 1.0, -1e17, 99.0][(number >> 20) as usize % 4]);
        }
        Ok(())
    }
}

const ROUNDED_KEYS: u32 = 50_000;

fn rounded_results() {
    let (_dir, input) = input_of(&vec![b'x'; 1_000_000]);
    let mut died = 0;
    for nth in (1..64).step_by(9) {
        let job = Job::new(&Rounded, Input::paths([&input])).records(Records::Fixed(1)).split_bytes(50_000);
        let job = job.map_workers(2).reduce_workers(2).page_bytes(4096).order(Order::ByValueDescending);
        // A reducer sends nothing but its result.
        let job = job.die_at(3, Moment::Sent, nth);
        let (mut keys, mut last) = (Vec::new(), f64::INFINITY);
        let summary = job.run_each(|key, sum| {
            assert!(sum <= last, "{sum} comes after {last}");
            (last, _) = (sum, keys.push(key));
        });
        died += summary.unwrap_or_else(|why| panic!("{nth}: {why}")).deaths.len();
        keys.sort_unstable();
        assert!(keys.iter().copied().eq(0..ROUNDED_KEYS), "{nth}: {} keys", keys.len());
    }
    assert!(died > 5, "only {died} died");
}

fn empty() {
    let (_dir, input) = input_of(b"");
    for case in [Case::fused(2), Case::split(2, 2)] {
        for worker in 1..=4 {
            for moment in [Moment::Drained, Moment::Sent] {
                case.check(&input, &[(worker, moment, 1)]).unwrap_or_else(|why| panic!("{moment:?}: {why}"));
            }
        }
    }
}

fn spares() {
    let (_dir, input) = input_of(&small_text());
    for case in [Case::fused(2), Case::split(2, 2)] {
        let fates: Vec<_> = (1..200).map(|worker| (worker, Moment::Claimed, 1)).collect();
        let why = Case { retries: 1000, ..case }.check(&input, &fates).expect_err("nobody survives");
        assert!(why.contains("workers died, more than the 32 that a job replaces. The last: worker "), "{why}");
        assert!(why.contains("signal 9 (SIGKILL)"), "{why}");
    }
}

// Map functions that kill.

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Panic,
    Abort,
    Segfault,
    Loop,
    Exit(i32),
}

/// Counts words, and dies of the word `poison`.
struct Deadly {
    how: How,
    /// If given, it dies only if it can create this file, which is once.
    once: Option<PathBuf>,
}

impl MapReduce for Deadly {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            if word == b"poison" && self.once.as_ref().is_none_or(|mark| std::fs::File::create_new(mark).is_ok()) {
                self.die();
            }
            out.emit(word, 1);
        }
        Ok(())
    }
}

impl Deadly {
    fn die(&self) {
        match self.how {
            How::Panic => panic!("the word is poison"),
            How::Abort => std::process::abort(),
            // The standard library's handler treats the first signal as a possible stack overflow and returns.
            How::Segfault => loop {
                kill_process(getpid(), Signal::SEGV).expect("a process may signal itself");
            },
            How::Loop => loop {
                std::thread::sleep(Duration::from_millis(1));
            },
            How::Exit(status) => std::process::exit(status),
        }
    }
}

fn poisoned_text() -> Vec<u8> {
    let mut text = small_text();
    let at = 7000 + text[7000..].iter().position(u8::is_ascii_whitespace).expect("a space");
    text.splice(at..at, *b" poison");
    text
}

/// Long enough for a task of 2000 bytes on a busy machine.
const TASK_TIMEOUT: Duration = Duration::from_millis(500);

const WAYS: [(How, &str); 6] = [
    (How::Panic, "it panicked: the word is poison"),
    (How::Abort, "signal 6 (SIGABRT)"),
    (How::Segfault, "signal 11 (SIGSEGV)"),
    (How::Loop, "it ran longer than the task timeout of 500ms"),
    (How::Exit(0), "exit status 0"),
    (How::Exit(3), "exit status 3"),
];

fn deadly(case: &Case, program: &Deadly, input: &Path) -> gristmill::Result<(common::Answer, gristmill::Summary)> {
    case.run_with(program, input, |job| if program.how == How::Loop { job.task_timeout(TASK_TIMEOUT) } else { job })
}

fn always() {
    let text = poisoned_text();
    let at = text.windows(6).position(|bytes| bytes == b"poison").expect("it is there");
    let place = format!("/text bytes {at}..{}: ", at + 7);
    let (_dir, input) = input_of(&text);
    for case in [Case::fused(2), Case::split(2, 1)] {
        for (how, cause) in WAYS {
            let error = deadly(&case, &Deadly { how, once: None }, &input).expect_err("it always dies");
            let text = error.to_string();
            println!("{text}");
            assert!(matches!(error, Error::RecordFailed { attempts: 3, .. }), "{text}");
            let parts = [
                "worker ",
                " (pid ",
                ") died in map on ",
                &place,
                cause,
                ". The task was tried 3 times, and that record did it",
            ];
            let mut at = 0;
            for part in parts {
                at += text[at..].find(part).unwrap_or_else(|| panic!("{part:?} is missing in {text:?}")) + part.len();
            }
        }
    }
}

fn once() {
    let text = poisoned_text();
    let (dir, input) = input_of(&text);
    let expected = common::oracle(&text, true, Order::ByKey, usize::MAX);
    for (number, case) in [Case::fused(2), Case::split(2, 1)].iter().enumerate() {
        for (how, cause) in WAYS {
            let mark = dir.path().join(format!("{how:?}{number}"));
            let (pairs, summary) = deadly(case, &Deadly { how, once: Some(mark) }, &input).expect("it dies only once");
            assert!(pairs == expected, "{how:?} gives another answer");
            assert_eq!(summary.deaths.len(), 1, "{:?}", summary.deaths);
            assert!(summary.deaths[0].contains(cause), "{:?}", summary.deaths);
        }
    }
}

/// Combines so slowly that map workers wait for pages much longer than a task may take.
struct SlowToReduce;

impl MapReduce for SlowToReduce {
    type Key = Bytes;
    type Value = u64;
    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| {
            std::thread::sleep(Duration::from_micros(100));
            a + b
        })
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, 1);
        }
        Ok(())
    }
}

fn waiting_task() {
    // One task that emits more than all pages of its worker hold.
    let text = random_text(&mut Random(4), 900_000, 100, 100, false);
    let (_dir, input) = input_of(&text);
    let expected = common::oracle(&text, true, Order::ByKey, usize::MAX);
    let case = Case { buffer: Buffer::Array, split_bytes: 1 << 20, retries: 0, ..Case::split(1, 1) };
    let began = Instant::now();
    let (pairs, _) = case
        .run_with(&SlowToReduce, &input, |job| job.task_timeout(Duration::from_millis(400)))
        .expect("waiting is no reason to die");
    assert!(pairs == expected);
    assert!(began.elapsed() > Duration::from_millis(700), "the map worker had to wait: {:?}", began.elapsed());
}

thread_local! {
    static SLOW_TO_DROP: SlowToDrop = const { SlowToDrop };
}

struct SlowToDrop;

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Always panics, on a thread that takes a while to finish after that.
struct SlowToEnd;

impl MapReduce for SlowToEnd {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, _: &mut Chunk<'_>, _: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        SLOW_TO_DROP.with(|_| panic!("it ends slowly"));
        Ok(())
    }
}

/// The coordinator once asked a thread that had announced its end whether it was finished, learned that it was not, and
/// slept for ever.
fn slow_end() {
    let (_dir, input) = input_of(&small_text());
    let run = |job: gristmill::Job<'_, SlowToEnd>| job.isolation(gristmill::Isolation::Thread).run();
    let job = gristmill::Job::new(&SlowToEnd, gristmill::Input::paths([&input])).workers(2);
    let error = run(job).map(|_| ()).expect_err("it always panics").to_string();
    assert!(error.contains("it panicked: it ends slowly"), "{error}");
}

struct PanicsInReduce;

impl MapReduce for PanicsInReduce {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|_, _| panic!("no two are alike"))
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, 1);
        }
        Ok(())
    }
}

fn combine_panics() {
    let (_dir, input) = input_of(&small_text());
    for case in [Case::fused(2), Case::split(2, 2)] {
        for buffer in [Buffer::Array, Buffer::Hash] {
            let case = Case { buffer, ..case.clone() };
            let error = case.run_with(&PanicsInReduce, &input, |job| job).expect_err("it always panics").to_string();
            println!("{error}");
            assert!(error.contains("it panicked: no two are alike"), "{error}");
            assert!(error.contains(" 3 times and the job stopped"), "{error}");
        }
    }
}

// Coordinator.

/// Runs until it is killed, with either topology, depending on the process number.
fn long_job() {
    let input = PathBuf::from(std::env::var_os("GRISTMILL_TEST_INPUT").expect("the test names it"));
    let case = if std::process::id().is_multiple_of(2) { Case::fused(4) } else { Case::split(3, 2) };
    let program = Places { pause: Duration::from_millis(2) };
    loop {
        case.run_with(&program, &input, |job| job).expect("nobody kills the workers");
    }
}

fn coordinator() {
    let (_dir, input) = input_of(&random_text(&mut Random(5), 60_000, 5000, 12, true));
    let mut random = Random(6);
    for round in 0..30 {
        let signal = [Signal::KILL, Signal::INT, Signal::TERM][round % 3];
        let mut job = common::start_with(&["--alone", "long_job"], &[("GRISTMILL_TEST_INPUT", &input)]);
        std::thread::sleep(Duration::from_micros(random.below(120_000)));
        common::kill(job.pid(), signal);
        job.wait(Duration::from_secs(1), |_| {}).unwrap_or_else(|why| panic!("{signal:?}: {why}"));
        job.leftovers().unwrap_or_else(|why| panic!("after {signal:?}: {why}"));
    }
}

fn few_descriptors() {
    let (_dir, input) = input_of(&small_text());
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).expect("a lower limit is allowed");
    for case in [Case::fused(3), Case::split(2, 2)] {
        for nth in 1..30 {
            let fates = [(1, Moment::Claimed, 1), (2, Moment::Sent, nth), (4, Moment::Received, 3)];
            case.check(&input, &fates).expect("64 file descriptors are enough for a few workers");
        }
    }
    let why = Case::fused(100).check(&input, &[]).expect_err("100 workers need 100 descriptors");
    assert!(why.contains("starting a worker process: Too many open files"), "{why}");
    let program = Count { pause: Duration::ZERO };
    Case::fused(2).run_with(&program, &input, |job| job).expect("everything was closed again");
}
