//! Results that reducers write: the bytes are those of ten sequential lines, whichever reducer writes which part, and
//! whichever worker dies meanwhile.

mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use common::{Random, input_of, least_memory};
use gristmill::internal::Moment;
use gristmill::sinks::{Part, Row, Target};
use gristmill::{Bytes, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Summary};
use rustix::process::{Resource, Rlimit, setrlimit};

fn main() {
    common::run(
        &[
            ("parts_in_one_file_are_the_sorted_lines", one_file),
            ("a_folder_of_parts_contains_the_sorted_lines", parts),
            ("one_line_may_be_half_of_all_lines", hot_line),
            ("a_worker_killed_at_any_moment_changes_no_byte", killed),
            ("a_part_that_cannot_be_written_is_one_clear_error", full_disk),
            ("a_part_that_differs_when_repeated_is_one_clear_error", unrepeatable),
            ("a_result_that_reducers_cannot_write_is_refused", refused),
        ],
        &[],
    );
}

/// Sorts lines.
struct Lines;

impl MapReduce for Lines {
    type Key = Bytes;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
        chunk.lines().for_each(|line| out.emit(line, ()));
        Ok(())
    }
}

impl Row<Bytes, ()> for Lines {
    fn bytes(&self, line: &[u8], (): ()) -> usize {
        line.len() + 1
    }

    fn write(&self, line: &[u8], (): (), to: &mut Vec<u8>) {
        to.extend_from_slice(line);
        to.push(b'\n');
    }
}

/// Returns random-looking lines. If `hot` is not 0, one in `hot` is always the same.
fn text_of(seed: u64, lines: usize, hot: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut text = Vec::new();
    for _ in 0..lines {
        match hot {
            1.. if random.below(hot) == 0 => text.extend_from_slice(b"the same again"),
            _ => {
                let filling = "and more ".repeat(random.below(4) as usize);
                text.extend_from_slice(format!("{:x} {filling}", random.below(1 << 24)).as_bytes());
            }
        }
        text.push(b'\n');
    }
    text
}

fn sorted(text: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort();
    lines.concat()
}

/// The numbers of workers, `(map and reduce, map, reduce)`, and whether the job has only the least memory.
type Shape = ((usize, usize, usize), bool);

const SHAPES: [Shape; 4] = [((1, 0, 0), false), ((3, 0, 0), true), ((2, 0, 0), false), ((0, 2, 2), true)];

fn job<'j>(((fused, map, reduce), tight): Shape, input: &Path) -> Job<'j, Lines> {
    let job = || {
        let job = Job::new(&Lines, Input::paths([input])).split_bytes(20_000).page_bytes(4096);
        if fused > 0 { job.workers(fused) } else { job.map_workers(map).reduce_workers(reduce) }
    };
    if tight { job().memory(least_memory(job())) } else { job() }
}

/// Writes the result after three bytes of older content.
fn write(job: Job<'_, Lines>, path: &Path) -> gristmill::Result<(Vec<Part>, Summary, Vec<u8>)> {
    fs::write(path, "old").expect("written");
    let file = File::options().write(true).open(path).expect("opened");
    let (parts, summary) = job.write(path, Target::File { file: &file, start: 3 }, &Lines)?;
    let mut bytes = fs::read(path).expect("read");
    assert!(bytes.starts_with(b"old"));
    Ok((parts, summary, bytes.split_off(3)))
}

/// Checks that the parts are described correctly.
fn check_parts(parts: &[Part], bytes: &[u8]) {
    let mut rest = bytes;
    for part in parts {
        let (own, next) = rest.split_at(part.bytes as usize);
        let lines: Vec<&[u8]> = own.split_inclusive(|byte| *byte == b'\n').collect();
        let key = |line: &&[u8]| line[..line.len() - 1].to_vec();
        assert_eq!(part.records, lines.len() as u64);
        assert_eq!(part.checksum, crc32fast::hash(own));
        assert_eq!(part.keys, lines.first().map(|first| [key(first), key(lines.last().expect("there is a first"))]));
        rest = next;
    }
    assert!(rest.is_empty());
}

fn one_file() {
    let text = text_of(1, 60_000, 0);
    let (dir, input) = input_of(&text);
    let expected = sorted(&text);
    for shape in SHAPES {
        for isolation in [Isolation::Process, Isolation::Thread] {
            let job = job(shape, &input).isolation(isolation);
            let (parts, summary, found) = write(job, &dir.path().join("sorted")).expect("written");
            assert!(found == expected, "{shape:?}");
            assert_eq!(summary.pairs, 60_000);
            assert_eq!(parts.len(), 64, "so many pairs can be cut into as many ranges as there are partitions");
            assert!(parts.iter().all(|part| part.records < 60_000 / 16), "{:?}", parts.iter().map(|part| part.records));
            check_parts(&parts, &found);
        }
    }
    // Input too small for a sample gives one part, and empty input gives one without keys.
    for few in [&b"b\na\n"[..], b""] {
        let (dir, input) = input_of(few);
        let (parts, _, found) = write(job(SHAPES[0], &input), &dir.path().join("sorted")).expect("written");
        assert!(found == sorted(few) && parts.len() == 1);
        check_parts(&parts, &found);
    }
}

fn parts() {
    let text = text_of(2, 30_000, 0);
    let (dir, input) = input_of(&text);
    let mut made: Vec<PathBuf> = Vec::new();
    let mut make = |count: usize| {
        made = (0..count).map(|number| dir.path().join(format!("part-{number}"))).collect();
        made.iter().map(File::create).collect()
    };
    let target = Target::Parts(&mut make);
    let (parts, _) = job(SHAPES[2], &input).write(dir.path(), target, &Lines).expect("written");
    let found: Vec<Vec<u8>> = made.iter().map(|path| fs::read(path).expect("read")).collect();
    assert_eq!(
        parts.iter().map(|part| part.bytes as usize).collect::<Vec<_>>(),
        found.iter().map(Vec::len).collect::<Vec<_>>()
    );
    assert!(found.concat() == sorted(&text));
    check_parts(&parts, &found.concat());
    let mut refuse = |_| Err(std::io::Error::other("no more names"));
    let why =
        job(SHAPES[2], &input).write(Path::new("folder"), Target::Parts(&mut refuse), &Lines).expect_err("refused");
    assert_eq!(why.to_string(), "cannot write folder: no more names");
}

fn hot_line() {
    let text = text_of(3, 60_000, 2);
    let (dir, input) = input_of(&text);
    for shape in SHAPES {
        let (parts, _, found) = write(job(shape, &input), &dir.path().join("sorted")).expect("written");
        assert!(found == sorted(&text), "{shape:?}");
        check_parts(&parts, &found);
    }
}

fn killed() {
    let text = text_of(4, 30_000, 5);
    let (dir, input) = input_of(&text);
    let expected = sorted(&text);
    for shape in [SHAPES[1], SHAPES[2], SHAPES[3]] {
        for moment in [Moment::Written, Moment::Drained, Moment::Sent, Moment::Received, Moment::RunsMerged] {
            let mut died = 0;
            for worker in 1..=4 {
                for nth in [1, 3, 40] {
                    let job = job(shape, &input).die_at(worker, moment, nth).die_at(worker + 3, moment, 1);
                    let written = write(job, &dir.path().join("sorted"));
                    let (parts, summary, found) =
                        written.unwrap_or_else(|why| panic!("worker {worker} at its {nth}. {moment:?}: {why}"));
                    assert!(found == expected, "worker {worker} at its {nth}. {moment:?}: {shape:?}");
                    check_parts(&parts, &found);
                    died += summary.deaths.len();
                }
            }
            assert!(died > 0 || moment == Moment::RunsMerged && !shape.1, "nobody died at {moment:?}: {shape:?}");
        }
    }
}

/// Sorts lines, with a limit for the size of files.
struct Limited {
    file_bytes_max: u64,
}

impl MapReduce for Limited {
    type Key = Bytes;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
        let limit = Rlimit { current: Some(self.file_bytes_max), maximum: None };
        setrlimit(Resource::Fsize, limit).expect("a lower limit is allowed");
        Lines.map(chunk, out)
    }
}

fn full_disk() {
    let text = text_of(5, 30_000, 0);
    let (dir, input) = input_of(&text);
    let path = dir.path().join("sorted");
    let file = File::create(&path).expect("created");
    // At the first byte, and in the middle, with one worker that both maps and writes.
    for file_bytes_max in [0, text.len() as u64 / 2] {
        let limited = Limited { file_bytes_max };
        let job = Job::new(&limited, Input::paths([&input])).workers(1);
        let error = job.write(&path, Target::File { file: &file, start: 0 }, &Lines).expect_err("there is no room");
        assert!(matches!(error, Error::Output { .. }), "{error}");
        let why = error.to_string();
        assert!(why.starts_with(&format!("cannot write {}: File too large", path.display())), "{why}");
    }
}

/// Emits one more line when it is called again.
struct Forgetful {
    called: PathBuf,
}

impl MapReduce for Forgetful {
    type Key = Bytes;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
        if self.called.exists() {
            out.emit(b"once more", ());
        }
        fs::write(&self.called, "").expect("written");
        Lines.map(chunk, out)
    }
}

fn unrepeatable() {
    let (dir, input) = input_of(b"b\na\n");
    let path = dir.path().join("sorted");
    let file = File::create(&path).expect("created");
    let program = Forgetful { called: dir.path().join("called") };
    let job = Job::new(&program, Input::paths([&input])).workers(1).die_at(1, Moment::Written, 1);
    let error = job.write(&path, Target::File { file: &file, start: 0 }, &Lines).expect_err("it is not the same");
    assert!(matches!(error, Error::Unrepeatable { .. }), "{error}");
}

fn refused() {
    let (dir, input) = input_of(b"b\na\n");
    let file = File::create(dir.path().join("sorted")).expect("created");
    let job = || Job::new(&Lines, Input::paths([&input]));
    let continued = job().checkpoint(dir.path().join("checkpoint"), "lines", std::time::Duration::from_secs(1));
    for (job, why) in [(job().top(1), "only a result in the order of keys"), (continued, "cannot be continued")] {
        let error = job.write(dir.path(), Target::File { file: &file, start: 0 }, &Lines).expect_err("refused");
        assert!(matches!(&error, Error::Setting(what) if what.contains(why)), "{error}");
    }
}
