//! Records on which the map function panics, dies, loops or rejects: the error names them, or they are set aside and
//! everything else is as if they did not exist.

mod common;
#[path = "bad_records/returned.rs"]
mod returned;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Answer, Case, Random, input_of};
use gristmill::files::Syntax;
use gristmill::internal::Moment;
use gristmill::options::Combining;
use gristmill::stats::{BadRecord, Count};
use gristmill::{
    Bytes, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, ProgramError, Records, Result, Summary,
};
use gristmill_os::allocations::Counting;
use rustix::process::{Signal, getpid, kill_process};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    common::run(
        &[
            ("the_error_names_the_record_and_its_line", named),
            ("the_error_names_the_record_of_a_compressed_file", named_in_gzip),
            ("only_records_that_fail_are_set_aside", set_aside),
            ("records_that_kill_are_set_aside_one_after_the_other", killers),
            ("a_record_that_finds_no_memory_is_not_set_aside", no_memory),
            ("threads_set_panics_aside_too", threads),
            ("a_record_of_several_lines_is_set_aside_whole", csv),
            ("a_bad_record_beyond_the_limit_is_an_error", one_more),
            ("records_stay_set_aside_when_reduce_state_is_lost", lost_state),
            ("a_worker_killed_from_outside_costs_no_record", from_outside),
            ("the_failures_of_a_job_are_bounded", bounded),
            ("jobs_that_cannot_set_records_aside_are_refused", refused),
            ("a_rejection_may_have_an_empty_or_long_reason", reasons),
            ("a_task_killed_twice_is_retried_by_record_only_where_it_died", only_there),
            ("a_search_makes_few_calls_if_each_takes_long", few_calls),
            ("a_compressed_file_is_not_decoded_again_to_name_a_line", no_line),
            ("many_bad_records_cost_few_switches", many),
            ("an_error_of_the_map_function_names_its_line_and_is_not_tried_again", returned::of_map),
            ("an_error_of_a_map_function_that_writes_to_its_records_names_the_piece", returned::of_map_that_writes),
            ("records_for_which_the_map_function_returns_an_error_are_set_aside", returned::set_aside),
            ("an_error_that_asks_for_it_is_tried_again", returned::retried),
            ("an_error_of_the_reduce_function_names_its_key_and_is_not_tried_again", returned::of_reduce),
            ("a_panic_in_the_reduce_function_names_its_key", returned::of_reduce_that_panics),
            ("an_error_that_a_combiner_throws_ends_the_job_and_sets_no_record_aside", returned::of_combine),
            ("an_error_in_a_step_names_the_step", returned::of_steps),
        ],
        &[],
    );
}

/// Counts words. A line that begins with `poison:` misbehaves as it says, after its words have been emitted.
struct Poisonable;

impl MapReduce for Poisonable {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        // Changes to the bytes must not be seen by a later attempt that maps them.
        chunk.bytes_mut().make_ascii_uppercase();
        for (at, line) in chunk.records() {
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).for_each(|word| out.emit(word, 1));
            match line.strip_prefix(b"POISON:") {
                Some(b"PANIC") => panic!("the line is poison"),
                Some(b"ABORT") => std::process::abort(),
                // The standard library's handler treats the first signal as a possible stack overflow and returns.
                Some(b"SEGV") => loop {
                    kill_process(getpid(), Signal::SEGV).expect("a process may signal itself");
                },
                Some(b"LOOP") => loop {
                    std::thread::sleep(Duration::from_millis(1));
                },
                Some(b"EXIT") => std::process::exit(3),
                // No system has that much memory.
                Some(b"MEMORY") => drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 62))),
                Some(b"REJECT") => return Err(chunk.reject(at, "this is no line for me")),
                Some(_) => panic!("more\nthan one line"),
                None => {}
            }
        }
        Ok(())
    }
}

/// Longer than any record takes on a busy machine.
const TASK_TIMEOUT: Duration = Duration::from_millis(500);

const WAYS: [(&str, &str); 5] = [
    ("panic", "it panicked: the line is poison"),
    ("abort", "signal 6 (SIGABRT)"),
    ("segv", "signal 11 (SIGSEGV)"),
    ("loop", "it ran longer than the task timeout of 500ms"),
    ("exit", "exit status 3"),
];

/// Returns lines of a few words, with each of `poison` at its line number.
fn lines(count: usize, poison: &[(usize, &str)]) -> Vec<String> {
    let mut random = Random(7);
    let mut lines: Vec<String> =
        (0..count).map(|_| (0..random.below(9)).map(|_| format!("w{} ", random.below(50))).collect()).collect();
    poison.iter().for_each(|(line, way)| lines[line - 1] = format!("poison:{way}"));
    lines
}

fn text_of(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]).flatten().copied().collect()
}

/// Returns the counts of all lines that are not poison.
fn expected(lines: &[String]) -> Answer {
    let good: Vec<String> = lines.iter().filter(|line| !line.starts_with("poison")).cloned().collect();
    common::oracle(&text_of(&good).to_ascii_uppercase(), true, gristmill::Order::ByKey, usize::MAX)
}

fn run(
    case: &Case,
    input: &Path,
    change: impl FnOnce(Job<Poisonable>) -> Job<Poisonable>,
) -> Result<(Answer, Summary)> {
    case.run_with(&Poisonable, input, |job| change(job.records(Records::Lines)))
}

fn cases() -> [Case; 2] {
    [Case::fused(2), Case::split(2, 1)]
}

fn named() {
    for (way, cause) in WAYS {
        let lines = lines(1000, &[(603, way)]);
        let (_dir, input) = input_of(&text_of(&lines));
        let start = text_of(&lines[..602]).len();
        let bytes = format!("/text line 603, bytes {start}..{}", start + lines[602].len() + 1);
        for case in cases() {
            let ran = run(&case, &input, |job| if way == "loop" { job.task_timeout(TASK_TIMEOUT) } else { job });
            let Err(error) = ran else { panic!("it always dies") };
            let text = error.to_string();
            println!("{text}");
            assert!(matches!(error, Error::RecordFailed { line: Some(603), attempts: 3, .. }), "{text}");
            assert!(text.contains(&bytes) && text.contains(cause), "{text}");
        }
    }
    // Without a retry, nobody has searched for the record.
    let (_dir, input) = input_of(&text_of(&lines(1000, &[(603, "abort")])));
    let Err(error) = run(&Case { retries: 0, ..Case::fused(2) }, &input, |job| job) else { panic!("it always dies") };
    assert!(matches!(error, Error::TaskFailed { attempts: 1, .. }), "{error}");
}

/// Writes a file that cannot be cut.
fn gzip_of(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text.gz");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text).expect("packed");
    std::fs::write(&path, packer.finish().expect("packed")).expect("written");
    (dir, path)
}

fn named_in_gzip() {
    let lines = lines(1000, &[(700, "abort")]);
    let (_dir, path) = gzip_of(&text_of(&lines));
    let Err(error) = run(&Case::fused(2), &path, |job| job) else { panic!("it always dies") };
    let start = text_of(&lines[..699]).len();
    let place = format!("text.gz line 700, bytes {start}..{} of its content: signal 6", start + 13);
    assert!(error.to_string().contains(&place), "{error}");
    let (pairs, summary) = run(&Case::fused(2), &path, |job| job.skip_bad_records(1)).expect("it is set aside");
    assert!(pairs == expected(&lines));
    assert_eq!(summary.bad_records[0].record, b"poison:abort");
}

/// Returns the bad records of a run: line, record and cause.
fn found(summary: &Summary) -> Vec<(usize, String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let one = |bad: &BadRecord| (bad.line.expect("a line") as usize, text(&bad.record), bad.cause.clone());
    summary.bad_records.iter().map(one).collect()
}

fn set_aside() {
    let poison: Vec<(usize, &str)> =
        (1..=1000).filter(|line| line % 37 == 0).map(|line| (line, ["panic", "reject", "?"][line % 3])).collect();
    let lines = lines(1000, &poison);
    let (_dir, input) = input_of(&text_of(&lines));
    let all: Vec<_> = poison
        .iter()
        .map(|(line, way)| {
            let cause = match *way {
                "panic" => "it panicked: the line is poison",
                "reject" => "this is no line for me",
                _ => "it panicked: more\nthan one line",
            };
            (*line, format!("poison:{way}"), cause.to_owned())
        })
        .collect();
    for case in cases() {
        for combine in [Combining::Both, Combining::Off] {
            let case = Case { combine, ..case.clone() };
            let (pairs, summary) = run(&case, &input, |job| job.skip_bad_records(all.len() as u32)).expect("enough");
            assert!(pairs == expected(&lines));
            assert_eq!(found(&summary), all);
            assert_eq!(summary.deaths, Vec::<String>::new(), "what can be caught costs no worker");
        }
    }
}

fn killers() {
    // Two of them are in one task, and one can be caught.
    let poison = [(200, "abort"), (203, "panic"), (204, "segv"), (610, "loop"), (900, "exit")];
    let lines = lines(1000, &poison);
    let (_dir, input) = input_of(&text_of(&lines));
    for case in cases() {
        let ran = run(&case, &input, |job| job.task_timeout(TASK_TIMEOUT).skip_bad_records(5));
        let (pairs, summary) = ran.expect("all are set aside");
        assert!(pairs == expected(&lines));
        for ((line, way), bad) in poison.iter().zip(found(&summary)) {
            let cause = WAYS.iter().find(|(name, _)| name == way).expect("a way").1;
            assert_eq!((*line, &format!("poison:{way}")), (bad.0, &bad.1));
            assert!(bad.2.contains(cause), "{bad:?}");
        }
        assert!(summary.deaths[0].contains(" (attempt 1 of 3): "), "{:?}", summary.deaths);
    }
}

fn no_memory() {
    // Under `ulimit -v`, long lines for which a worker found no memory were once set aside as bad, so good data was
    // missing in the result.
    let lines = lines(1000, &[(603, "memory")]);
    let (_dir, input) = input_of(&text_of(&lines));
    for case in cases() {
        for skip in [0, 10] {
            let ran = run(&case, &input, |job| job.skip_bad_records(skip));
            let Err(error) = ran else { panic!("there is no memory for it") };
            let text = error.to_string();
            assert!(matches!(error, Error::MemoryRefused { attempts: 3, .. }), "{text}");
            assert!(text.contains("line 603") && text.contains("the system refused it memory"), "{text}");
            assert!(!text.contains("skip_bad_records"), "{text}");
        }
    }
}

fn threads() {
    let lines = lines(1000, &[(20, "panic"), (800, "reject")]);
    let (_dir, input) = input_of(&text_of(&lines));
    let case = Case::fused(2);
    let ran = run(&case, &input, |job| job.isolation(Isolation::Thread).skip_bad_records(2));
    let (pairs, summary) = ran.expect("both are set aside");
    assert!(pairs == expected(&lines));
    assert_eq!(found(&summary).len(), 2);
    let (_dir, input) = input_of(&text_of(&lines[..700]));
    let Err(error) = run(&case, &input, |job| job.isolation(Isolation::Thread)) else { panic!("it always panics") };
    assert!(matches!(error, Error::RecordFailed { line: Some(20), .. }), "{error}");
}

/// Counts rows by their first field; a row with a line end in it is an error.
struct Rows;

impl MapReduce for Rows {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for (_, row) in chunk.records() {
            assert!(!row.contains(&b'\n'), "a row of several lines");
            out.emit(row.split(|byte| *byte == b',').next().unwrap_or_default(), 1);
        }
        Ok(())
    }
}

fn csv() {
    let mut text: String = (0..500).map(|row| format!("{row},\"said, {row}\"\n")).collect();
    text.insert_str(text.find("300,").expect("there"), "bad,\"two\nlines\"\n");
    let (_dir, input) = input_of(text.as_bytes());
    let job =
        Job::new(&Rows, Input::paths([&input])).records(Records::Csv(Syntax::default())).workers(2).split_bytes(1000);
    let (rows, summary) = job.skip_bad_records(1).run().expect("it is set aside");
    assert_eq!((rows.len(), rows.get(b"bad")), (500, None));
    let bad = &summary.bad_records[0];
    assert_eq!((bad.line, &bad.record[..]), (Some(301), &b"bad,\"two\nlines\""[..]));
}

fn one_more() {
    let (_dir, input) = input_of(&text_of(&lines(1000, &[(100, "panic"), (500, "reject"), (900, "panic")])));
    for case in cases() {
        let Err(error) = run(&case, &input, |job| job.skip_bad_records(2)) else { panic!("there are three") };
        assert!(matches!(error, Error::TooManyBadRecords { limit: 2, .. }), "{error}");
        assert!(error.to_string().contains("/text line "), "{error}");
    }
}

fn lost_state() {
    let poison = [(100, "panic"), (300, "abort"), (500, "reject"), (900, "panic")];
    let lines = lines(1000, &poison);
    let (_dir, input) = input_of(&text_of(&lines));
    for (case, worker) in [(Case::fused(2), 1), (Case::split(2, 1), 3)] {
        for moment in [Moment::Received, Moment::Drained, Moment::Sent] {
            let ran = run(&case, &input, |job| job.skip_bad_records(4).die_at(worker, moment, 1));
            let (pairs, summary) = ran.expect("it is made again");
            assert!(pairs == expected(&lines), "{moment:?}");
            let found: Vec<usize> = found(&summary).into_iter().map(|(line, ..)| line).collect();
            assert_eq!(found, [100, 300, 500, 900], "{moment:?}");
        }
    }
}

fn from_outside() {
    let lines = lines(1000, &[]);
    let (_dir, input) = input_of(&text_of(&lines));
    for case in cases() {
        for nth in 1..6 {
            let ran = run(&case, &input, |job| {
                job.skip_bad_records(4).die_at(1, Moment::Claimed, nth).die_at(2, Moment::Sent, nth)
            });
            let (pairs, summary) = ran.expect("it is made again");
            assert!(pairs == expected(&lines) && summary.bad_records.is_empty());
        }
    }
}

fn bounded() {
    let (_dir, input) = input_of(&text_of(&lines(1000, &[(100, "abort"), (500, "abort")])));
    for case in cases() {
        let ran = run(&case, &input, |job| job.skip_bad_records(2).max_failures(3));
        let Err(error) = ran else { panic!("four die") };
        assert!(matches!(error, Error::TooManyFailures { limit: 3, .. }), "{error}");
        assert!(error.to_string().contains("signal 6 (SIGABRT). That is one more than the 3 failures"), "{error}");
    }
}

fn refused() {
    let (_dir, input) = input_of(b"a\n");
    let job = || Job::new(&Poisonable, Input::paths([&input]));
    let why = |outcome: Result<Summary>| outcome.map(|_| ()).expect_err("refused").to_string();
    let steps = why(job().skip_bad_records(1).iterate(&[], |_| Next::Stop));
    assert!(steps.starts_with("a job in steps cannot set records aside"), "{steps}");
    let many = why(job().skip_bad_records(1_000_001).run_each(|_, _| {}));
    assert!(many.contains("at most 1000000"), "{many}");
    let none = why(job().records(Records::Fixed(0)).run_each(|_, _| {}));
    assert!(none.starts_with("records of 0 bytes were asked for"), "{none}");
}

/// Rejects lines, or panics on them, with messages of every kind.
struct Words;

impl MapReduce for Words {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, _: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let first = chunk.records().next().map(|(at, line)| (at, line.to_vec()));
        match first.as_ref().map(|(at, line)| (*at, &line[..])) {
            Some((at, b"empty")) => Err(chunk.reject(at, "")),
            Some((at, b"long")) => Err(chunk.reject(at, "\u{fc}".repeat(1000))),
            Some((at, b"odd")) => Err(chunk.reject(at, format!("a{}", "\u{fc}".repeat(1000)))),
            Some((_, b"far")) => Err(chunk.reject(usize::MAX, "it is far away")),
            Some((_, b"nothing")) => panic!("{}", ""),
            Some((_, b"number")) => std::panic::panic_any(7),
            Some((_, b"string")) => std::panic::panic_any(String::from("a string")),
            _ => Ok(()),
        }
    }
}

/// `split.reject(at, "")` once hung a job that sets records aside: an empty message was taken for none. A place beyond
/// the split was a panic, or a wrong place.
fn reasons() {
    let reason = "the program gave no reason";
    let (long, odd) = ("\u{fc}".repeat(256), format!("a{}", "\u{fc}".repeat(255)));
    let ways: [(&str, &str); 7] = [
        ("empty", reason),
        ("long", &long),
        ("odd", &odd),
        ("far", "it is far away"),
        ("nothing", "it panicked: a panic without words"),
        ("number", "it panicked: a panic without words"),
        ("string", "it panicked: a string"),
    ];
    for isolation in [Isolation::Process, Isolation::Thread] {
        for (way, cause) in ways {
            let (_dir, input) = input_of(format!("{way}\nb\n").as_bytes());
            let job =
                || Job::new(&Words, Input::paths([&input])).workers(2).isolation(isolation).records(Records::Lines);
            let (_, summary) = job().skip_bad_records(1).run().expect("it is set aside");
            assert_eq!(found(&summary), [(1, way.to_owned(), cause.to_owned())], "{isolation:?}");
            let error = job().run().map(|_| ()).expect_err("it is an error").to_string();
            assert!(error.contains(cause), "{way}, {isolation:?}: {error}");
        }
    }
}

/// Counts lines, and logs each call.
struct Called {
    log: std::fs::File,
}

impl MapReduce for Called {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        (&self.log).write_all(b".").expect("a short file");
        chunk.records().for_each(|(at, line)| out.emit(line, chunk.offset() + at as u64));
        Ok(())
    }
}

/// The mapper of one gzip file of 47 MB was once killed twice from outside. 0.5 s silently became 25 s, because the
/// third attempt went record by record from the beginning to the end.
fn only_there() {
    let lines: Vec<String> = (0..60_000).map(|line| format!("line {line}")).collect();
    let (dir, path) = gzip_of(&text_of(&lines));
    let chunks = text_of(&lines).len() / CHUNK_BYTES + 2;
    for skipped in [0, 5] {
        let log = dir.path().join(format!("calls {skipped}"));
        let program = Called { log: std::fs::File::create(&log).expect("made") };
        let job = Job::new(&program, Input::paths([&path])).map_workers(1).reduce_workers(1);
        let mut news = String::new();
        let job = job.chunk_bytes(CHUNK_BYTES).page_bytes(4096).skip_bad_records(skipped).sample(false);
        let job = job.die_at(1, Moment::Sent, 150).die_at(3, Moment::Sent, 250);
        let job = job.on_news(|words| news += words);
        let (pairs, summary) = job.run().expect("the third attempt is left alone");
        assert_eq!((pairs.len(), summary.deaths.len(), summary.bad_records.len()), (lines.len(), 2, 0));
        // Three attempts by chunks; in two of them also the records of two chunks.
        let calls = std::fs::metadata(&log).expect("there").len() as usize;
        let records = CHUNK_BYTES / "line 10000".len();
        assert!(calls <= 3 * chunks + 4 * records, "{calls} calls for {chunks} chunks of {records} records");
        if skipped == 0 {
            assert!(calls > chunks + records, "only {calls}: somebody has looked more closely");
            assert!(news.contains("Its task is mapped again, and record by record on "), "{news}");
        }
    }
}

const CHUNK_BYTES: usize = 16 << 10;

/// Takes a millisecond whatever it is given, and dies of one record: twice of SIGKILL, or each time of SIGABRT.
struct Slow {
    called: Called,
    deaths: std::fs::File,
    is_record_bad: bool,
}

impl MapReduce for Slow {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_millis(1));
        if chunk.records().any(|(_, record)| record == b"line 5990") {
            (&self.deaths).write_all(b".").expect("a short file");
            match self.deaths.metadata().expect("there").len() {
                _ if self.is_record_bad => std::process::abort(),
                1 | 2 => kill_process(getpid(), Signal::KILL).expect("a process may signal itself"),
                _ => {}
            }
        }
        self.called.map(chunk, out)
    }
}

/// A worker that was killed from outside twice in a chunk of 1,500 records went on record by record, with a function of
/// a millisecond for each call: 1.5 s became 30, and nothing said so.
fn few_calls() {
    let lines: Vec<String> = (0..6_000).map(|line| format!("line {line}")).collect();
    let (dir, path) = input_of(&text_of(&lines));
    for is_record_bad in [false, true] {
        let file = |name: &str| std::fs::File::create(dir.path().join(name)).expect("made");
        let program = Slow { called: Called { log: file("calls") }, deaths: file("deaths"), is_record_bad };
        let job = Job::new(&program, Input::paths([&path])).workers(1).records(Records::Lines).sample(false);
        match job.run() {
            Ok((pairs, summary)) if !is_record_bad => assert_eq!((pairs.len(), summary.deaths.len()), (lines.len(), 2)),
            Err(error) if is_record_bad => {
                let error = error.to_string();
                assert!(error.contains(" line 5991, ") && error.contains("that record did it"), "{error}");
            }
            other => panic!("{is_record_bad}: {:?}", other.map(|_| ())),
        }
        let calls = std::fs::metadata(dir.path().join("calls")).expect("there").len() as usize;
        assert!(calls < lines.len() / 2, "{calls} calls");
    }
}

/// Kills itself twice, at the last record, and logs each time.
struct KilledTwice {
    log: std::fs::File,
}

impl MapReduce for KilledTwice {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        if chunk.records().any(|(_, record)| record == b"line 19999") && self.log.metadata().expect("there").len() < 2 {
            (&self.log).write_all(b".").expect("a short file");
            kill_process(getpid(), Signal::KILL).expect("a process may signal itself");
        }
        chunk.records().for_each(|(at, line)| out.emit(line, chunk.offset() + at as u64));
        Ok(())
    }
}

/// A file that cannot be cut once took more than three times as long when its mapper was killed twice. To name the
/// line, the coordinator decoded everything before it, although the job went on. Only an error that ends the job names
/// the line.
fn no_line() {
    let lines: Vec<String> = (0..20_000).map(|line| format!("line {line}")).collect();
    let (dir, path) = gzip_of(&text_of(&lines));
    let program = KilledTwice { log: std::fs::File::create(dir.path().join("kills")).expect("made") };
    let job = Job::new(&program, Input::paths([&path])).workers(1).chunk_bytes(CHUNK_BYTES).sample(false);
    let (pairs, summary) = job.run().expect("the third attempt is left alone");
    assert_eq!((pairs.len(), summary.deaths.len()), (lines.len(), 2));
    let [chunk, record] = &summary.deaths[..] else { unreachable!("two deaths") };
    assert!(chunk.contains(" of its content (attempt 1 of 3)") && !chunk.contains(" line "), "{chunk}");
    assert!(record.contains(" of its content (attempt 2 of 3)") && !record.contains(" line "), "{record}");
}

/// Setting aside 200,000 of a million rows once took 99 s: each cost two process switches, and a search through all
/// those before it.
fn many() {
    const COUNT: usize = 30_000;
    let poison: Vec<(usize, &str)> = (1..=COUNT).filter(|line| line % 2 == 0).map(|line| (line, "reject")).collect();
    let lines = lines(COUNT, &poison);
    let (_dir, plain) = input_of(&text_of(&lines));
    let (_gzip_dir, packed) = gzip_of(&text_of(&lines));
    for input in [plain, packed] {
        for isolation in [Isolation::Process, Isolation::Thread] {
            let case = Case { split_bytes: 50_000, ..Case::fused(2) };
            let ran = run(&case, &input, |job| job.isolation(isolation).skip_bad_records(poison.len() as u32));
            let (pairs, summary) = ran.expect("all are set aside");
            assert!(pairs == expected(&lines));
            let found = found(&summary);
            assert_eq!(found.len(), poison.len());
            assert!(
                found.iter().zip(&poison).all(|(found, poison)| (found.0, &*found.1) == (poison.0, "poison:reject"))
            );
            let switches = summary.workers.iter().map(|worker| worker.counters.get(Count::VoluntarySwitches));
            let switches: u64 = switches.sum();
            assert!(switches < poison.len() as u64 / 5, "{switches} switches for {} bad records", poison.len());
        }
    }
}
