//! Sinks: what reducers write is the result of ten sequential lines, once and whole, whoever dies.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use common::{Case, Random, die_at_every, input_of, random_text};
use gristmill::internal::Moment;
use gristmill::options::Combining;
use gristmill::sinks::{Attempt, PartFiles, Row, SinkWriter};
use gristmill::stats::Count as Counted;
use gristmill::{Bytes, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Order, ProgramError, Sink};

fn main() {
    common::run(
        &[
            ("the_files_of_all_parts_are_the_result_in_every_plan", plans),
            ("a_worker_killed_at_any_moment_changes_no_part", killed),
            ("a_part_is_committed_once_and_its_other_attempts_never", committed),
            ("a_reduce_function_and_threads_write_to_a_sink_too", reduced),
            ("a_continued_job_writes_its_parts", continued),
            ("an_error_of_a_sink_is_one_clear_error_and_leaves_nothing", failing),
            ("a_folder_with_files_is_refused", refused),
        ],
        &[],
    );
}

fn plans() {
    let (_dir, input) = input_of(&random_text(&mut Random(1), 100_000, 3_000, 12, true));
    let mut spilled = 0;
    for case in [Case::fused(1), Case::fused(2), Case::fused(7), Case::split(2, 3)] {
        for (count, order) in [(true, Order::ByKey), (true, Order::ByValueDescending), (false, Order::Unordered)] {
            for (limit, least_memory) in [(usize::MAX, false), (usize::MAX, true), (10, false)] {
                let case = Case { sink: true, count, order, limit, least_memory, ..case.clone() };
                let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{why}: {case:?}"));
                spilled += summary.workers.iter().map(|worker| worker.counters.get(Counted::Runs)).sum::<u64>();
            }
        }
    }
    assert!(spilled > 0, "jobs with the least memory spill");
}

fn killed() {
    let (_dir, input) = input_of(&random_text(&mut Random(2), 20_000, 900, 10, false));
    let mut died = 0;
    for moment in [Moment::Drained, Moment::Written, Moment::Sent, Moment::Received] {
        for case in [Case::fused(3), Case::split(2, 2)] {
            let case = Case { sink: true, ..case };
            died += die_at_every(&case, &input, case.split.map_or(2, |(map, _)| map + 1), moment, |nth| nth * 3);
        }
    }
    assert!(died >= 8, "{died} workers died");
}

/// Counts words.
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

/// The moments at which a sink fails or dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Open,
    Pair,
    Close,
    Commit,
    /// The first attempt at each part is killed after some pairs.
    Killed,
    /// The first attempt at each part asks to be tried again.
    Retried,
}

/// Writes each attempt to a file of its own.
struct Files<'d> {
    dir: &'d Path,
    trouble: Trouble,
    committed: Mutex<Vec<Attempt>>,
    aborts: Mutex<u32>,
}

struct Writer<'d> {
    files: &'d Files<'d>,
    at: Attempt,
    is_first: bool,
    text: String,
    pairs: u32,
}

impl Files<'_> {
    fn new(dir: &Path, trouble: Trouble) -> Files<'_> {
        Files { dir, trouble, committed: Mutex::default(), aborts: Mutex::default() }
    }

    fn fails_at(&self, moment: Trouble) -> Result<(), ProgramError> {
        if self.trouble == moment { Err(ProgramError::new(format!("no {moment:?}")).code(5)) } else { Ok(()) }
    }

    fn path(&self, at: Attempt) -> std::path::PathBuf {
        self.dir.join(format!("{}.{}", at.part, at.attempt))
    }
}

impl Sink<Bytes, u64> for Files<'_> {
    fn open(&self, at: Attempt) -> Result<Box<dyn SinkWriter<Bytes, u64> + '_>, ProgramError> {
        self.fails_at(Trouble::Open)?;
        let begun = self.dir.join(format!("{}.begun", at.part));
        let is_first = fs::File::create_new(begun).is_ok();
        fs::File::create_new(self.path(at)).expect("no attempt has the number of another");
        Ok(Box::new(Writer { files: self, at, is_first, text: String::new(), pairs: 0 }))
    }

    fn commit(&self, parts: &[Attempt]) -> Result<(), ProgramError> {
        self.fails_at(Trouble::Commit)?;
        self.committed.lock().expect("unharmed").extend(parts);
        Ok(())
    }

    fn abort(&self) {
        *self.aborts.lock().expect("unharmed") += 1;
    }
}

impl SinkWriter<Bytes, u64> for Writer<'_> {
    fn pair(&mut self, word: &[u8], count: u64) -> Result<(), ProgramError> {
        self.pairs += 1;
        if self.pairs == 3 && self.is_first {
            match self.files.trouble {
                Trouble::Killed => std::process::abort(),
                Trouble::Retried => return Err(ProgramError::new("not now").retry()),
                _ => {}
            }
        }
        self.files.fails_at(Trouble::Pair)?;
        self.text += &format!("{} {count}\n", String::from_utf8_lossy(word));
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), ProgramError> {
        self.files.fails_at(Trouble::Close)?;
        Ok(fs::write(self.files.path(self.at), &self.text)?)
    }
}

fn counts(text: &[u8]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.for_each(|word| *counts.entry(String::from_utf8_lossy(word).into_owned()).or_default() += 1);
    counts
}

fn committed() {
    let text = random_text(&mut Random(3), 50_000, 2_000, 10, false);
    for trouble in [Trouble::None, Trouble::Killed, Trouble::Retried] {
        for workers in [1, 2, 7] {
            let dir = tempfile::tempdir().expect("a folder");
            let files = Files::new(dir.path(), trouble);
            let job = Job::new(&Words, Input::bytes("text", &text).expect("input")).workers(workers).split_bytes(2_000);
            let summary = job.isolation(Isolation::Process).run_into(&files).expect("an answer");
            let parts = files.committed.into_inner().expect("unharmed");
            let numbers: BTreeSet<usize> = parts.iter().map(|at| at.part).collect();
            assert_eq!(numbers.len(), parts.len(), "each part once: {parts:?}");
            assert!(numbers.last() < Some(&workers), "{parts:?}");
            let deaths = if trouble == Trouble::None { 0 } else { parts.len() };
            assert_eq!(summary.deaths.len(), deaths, "{trouble:?}: {:?}", summary.deaths);
            let mut found = BTreeMap::new();
            for at in &parts {
                let text = fs::read_to_string(dir.path().join(format!("{}.{}", at.part, at.attempt))).expect("read");
                for line in text.lines() {
                    let (word, count) = line.split_once(' ').expect("two fields");
                    assert_eq!(found.insert(word.to_owned(), count.parse().expect("a number")), None, "{word} twice");
                }
            }
            assert!(found == counts(&text) && summary.pairs == found.len() as u64, "{trouble:?}, {workers} workers");
            assert_eq!(*files.aborts.lock().expect("unharmed"), 0);
        }
    }
}

/// A row of text.
struct Line;

impl<V: gristmill::Datum> Row<Bytes, V> for Line
where
    for<'a> V::Ref<'a>: std::fmt::Display,
{
    fn write(&self, key: &[u8], value: V::Ref<'_>, to: &mut Vec<u8>) {
        to.extend_from_slice(key);
        to.extend_from_slice(format!(" {value}\n").as_bytes());
    }
}

/// Returns the lines of all files in a folder, sorted.
fn lines(dir: &Path) -> Vec<String> {
    let paths = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = paths.map(|path| fs::read_to_string(path).expect("read"));
    let mut lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.sort();
    lines
}

fn reduced() {
    let text = random_text(&mut Random(4), 40_000, 1_000, 10, false);
    let expected: Vec<String> =
        counts(&text).iter().map(|(word, count)| format!("{word} {}", *count as f64 / 2.0)).collect();
    for isolation in [Isolation::Process, Isolation::Thread] {
        for combine in [Combining::Both, Combining::Off] {
            let dir = tempfile::tempdir().expect("a folder");
            let job = Job::new(&Words, Input::bytes("text", &text).expect("input")).workers(3).split_bytes(2_000);
            let job = job.combine(combine).isolation(isolation).reduce_to::<Bytes, f64>(|word, counts, emit| {
                emit(word, counts.owned().sum::<u64>() as f64 / 2.0);
                Ok(())
            });
            let result = dir.path().join("halves");
            job.run_into(&PartFiles::new(&result, &Line).expect("made")).expect("written");
            assert!(lines(&result) == expected, "{isolation:?}, {combine:?}");
        }
    }
}

fn continued() {
    let text = random_text(&mut Random(5), 40_000, 1_000, 10, false);
    let expected: Vec<String> = counts(&text).iter().map(|(word, count)| format!("{word} {count}")).collect();
    let (dir, input) = input_of(&text);
    for name in ["first", "again"] {
        let job = Job::new(&Words, Input::paths([&input])).workers(3).split_bytes(2_000).die_at(2, Moment::Written, 1);
        let job = job.checkpoint(dir.path().join("checkpoint"), "words", Duration::ZERO);
        let result = dir.path().join(name);
        let summary = job.run_into(&PartFiles::new(&result, &Line).expect("made")).expect("written");
        assert!(lines(&result) == expected, "{name}");
        assert_eq!(summary.resumed_tasks > 0, name == "again");
    }
}

fn failing() {
    for isolation in [Isolation::Process, Isolation::Thread] {
        for trouble in [Trouble::Open, Trouble::Pair, Trouble::Close, Trouble::Commit] {
            for limit in [usize::MAX, 2] {
                let dir = tempfile::tempdir().expect("a folder");
                let files = Files::new(dir.path(), trouble);
                let job = Job::new(&Words, Input::bytes("text", b"a b c d e f").expect("input")).workers(2);
                let job = if limit < usize::MAX { job.top(limit) } else { job };
                let Err(Error::Program { what, why, code }) = job.isolation(isolation).run_into(&files) else {
                    panic!("{trouble:?}: no error");
                };
                assert_eq!((why, code), (format!("no {trouble:?}"), Some(5)));
                assert!(what.starts_with("the sink, "), "{what}");
                assert_eq!(*files.aborts.lock().expect("unharmed"), 1);
            }
        }
    }
    // A full disk, as a file system of its own would be.
    let dir = tempfile::tempdir().expect("a folder");
    let job = || Job::new(&Words, Input::bytes("text", b"a b c d e f").expect("input")).workers(2);
    let result = dir.path().join("result");
    let files = PartFiles::<Bytes, u64>::new(&result, &Line).expect("made");
    for hidden in fs::read_dir(dir.path()).expect("a folder") {
        fs::remove_dir(hidden.expect("an entry").path()).expect("removed");
    }
    let error = job().isolation(Isolation::Process).run_into(&files).expect_err("its folder is gone").to_string();
    assert!(error.contains("the sink, at part ") && error.contains("No such file or directory"), "{error}");
    // A job that fails for another reason leaves nothing.
    let files = PartFiles::<Bytes, u64>::new(&result, &Line).expect("made");
    let error = job().memory(1).run_into(&files).expect_err("one byte is enough for no job");
    assert!(error.to_string().contains("needs at least"), "{error}");
    drop(PartFiles::<Bytes, u64>::new(&result, &Line).expect("made"));
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
}

fn refused() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("file"), "mine").expect("written");
    for folder in [dir.path().to_owned(), dir.path().join("file"), dir.path().join("missing/result")] {
        let error = PartFiles::<Bytes, u64>::new(&folder, &Line).err().expect("refused").to_string();
        assert!(error.starts_with(&format!("cannot make the folder {}: ", folder.display())), "{error}");
    }
    assert_eq!(lines(dir.path()), ["mine"]);
}
