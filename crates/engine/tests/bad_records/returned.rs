//! Errors that map and reduce functions return: the job's error has their messages, their code, and the record.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use gristmill::options::Combining;
use gristmill::{Bytes, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, Pairs, ProgramError};

const BOTH: [Isolation; 2] = [Isolation::Process, Isolation::Thread];

/// An error with a source.
#[derive(Debug)]
struct Misread(std::num::ParseIntError);

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not the time of a visit")
    }
}

impl std::error::Error for Misread {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// The program's way with a line that is no number.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Returns its error as it is.
    AsItIs,
    WithCode,
    /// As before, after it has written over the line.
    Overwritten,
    Retried,
    /// Lets the task be tried again, and then maps the line as 0.
    RetriedOnce,
}

/// Adds up numbers, one in each line.
struct Sum {
    way: Way,
    /// A byte is appended for each call of the map function that meets a bad line.
    calls: PathBuf,
}

impl Sum {
    /// Returns the number of calls so far.
    fn calls(&self) -> u64 {
        std::fs::metadata(&self.calls).map_or(0, |file| file.len())
    }
}

impl MapReduce for Sum {
    type Key = u8;
    type Value = i64;

    fn combiner(&self) -> Option<impl Fn(i64, i64) -> i64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, i64>) -> Result<(), ProgramError> {
        if self.way == Way::Overwritten {
            chunk.bytes_mut().make_ascii_uppercase();
        }
        for line in chunk.lines() {
            let number = match str::from_utf8(line)?.parse::<i64>().map_err(Misread) {
                Ok(number) => number,
                Err(error) => {
                    let seen = self.calls();
                    let mut calls = OpenOptions::new().append(true).create(true).open(&self.calls)?;
                    calls.write_all(b"x")?;
                    match self.way {
                        Way::AsItIs | Way::Overwritten => Err(error)?,
                        Way::RetriedOnce if seen > 0 => 0,
                        Way::WithCode => return Err(ProgramError::from(error).code(-7)),
                        Way::Retried | Way::RetriedOnce => return Err(ProgramError::from(error).code(8).retry()),
                    }
                }
            };
            out.emit(0, number);
        }
        Ok(())
    }
}

/// Runs `Sum` over 30,000 lines, of which number 20,001 is `line`.
fn sum(way: Way, line: &str, isolation: Isolation, workers: usize, aside: u32) -> (gristmill::Result<i64>, u64) {
    let (dir, path) = crate::input_of(b"");
    let mut text: String = (0..30_000).map(|n| format!("{n}\n")).collect();
    text = text.replace("\n20000\n", &format!("\n{line}\n"));
    std::fs::write(&path, text).expect("written");
    let program = Sum { way, calls: dir.path().join("calls") };
    let job = Job::new(&program, Input::paths([&path])).isolation(isolation).workers(workers);
    let outcome = job.split_bytes(20_000).chunk_bytes(5_000).skip_bad_records(aside).run();
    (outcome.map(|(sums, _)| sums.get(0).unwrap_or(0)), program.calls())
}

/// `?` in a map function did not compile, and a panic instead was tried three times.
pub fn of_map() {
    for isolation in BOTH {
        for workers in [1, 2, 7] {
            for (way, expected) in [(Way::AsItIs, None), (Way::WithCode, Some(-7))] {
                let (outcome, calls) = sum(way, "twenty", isolation, workers, 0);
                let Err(Error::Rejected { path, offset, line, why, code }) = outcome else {
                    panic!("{isolation:?} {workers}: {outcome:?}");
                };
                assert!(path.ends_with("text"));
                assert_eq!((line, offset, code), (Some(20_001), 108_890, expected));
                assert_eq!(why, "this is not the time of a visit: invalid digit found in string");
                assert_eq!(calls, 2, "the piece, and then the record by itself");
            }
        }
    }
}

/// The records cannot be mapped once more if the map function has written over them.
pub fn of_map_that_writes() {
    let (outcome, calls) = sum(Way::Overwritten, "twenty", Isolation::Process, 2, 0);
    let error = outcome.expect_err("no number").to_string();
    assert!(error.contains("bytes from byte") && error.contains("not the time of a visit"), "{error}");
    assert_eq!(calls, 1);
}

pub fn set_aside() {
    let all: i64 = (0..30_000).sum();
    for isolation in BOTH {
        for line in ["twenty", "\u{fc}", ""] {
            assert_eq!(sum(Way::WithCode, line, isolation, 2, 1).0.expect("one is set aside"), all - 20_000);
        }
    }
}

pub fn retried() {
    for isolation in BOTH {
        let all: i64 = (0..30_000).sum();
        assert_eq!(sum(Way::RetriedOnce, "twenty", isolation, 2, 0).0.expect("the second attempt"), all - 20_000);
        let (outcome, calls) = sum(Way::Retried, "twenty", isolation, 2, 0);
        let Err(Error::RecordFailed { line, last, attempts, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((line, attempts, calls), (Some(20_001), 3, 3));
        let expected = "it failed with the code 8: this is not the time of a visit: invalid digit found in string";
        assert!(last.contains(expected), "{last}");
    }
}

/// Emits each line, and refuses some pairs in the next step.
struct Lines;

impl MapReduce for Lines {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.lines().for_each(|line| out.emit(line, 1));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, Bytes, u64>, _: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        match pairs.iter().find(|(line, _)| line.starts_with(b"bad")) {
            Some(_) => Err(ProgramError::new("there is a bad one").code(3)),
            None => Ok(()),
        }
    }
}

/// Returns the text and the code of an [`Error::Program`].
fn told<T>(outcome: gristmill::Result<T>) -> (String, Option<i32>) {
    match outcome.map(drop).expect_err("the program fails") {
        error @ Error::Program { code, .. } => (error.to_string(), code),
        error => panic!("{error:?}"),
    }
}

/// A reduce function could only panic, which was tried three times, and its error named no key.
pub fn of_reduce() {
    let text: String = (0..3_000).map(|n| format!("line {n}\n")).collect();
    for isolation in BOTH {
        for memory in [64 << 20, 8 << 20] {
            let (dir, path) = crate::input_of((text.clone() + "bad one\n").as_bytes());
            let calls = dir.path().join("calls");
            let job = Job::new(&Lines, Input::paths([&path])).isolation(isolation).workers(2).memory(memory);
            let outcome = job
                .reduce(|line, _, emit| {
                    if line.starts_with(b"bad") {
                        let mut file = File::options().append(true).create(true).open(&calls)?;
                        file.write_all(b"x")?;
                        return Err(ProgramError::new("it is bad").code(i32::MIN));
                    }
                    emit(line, 1);
                    Ok(())
                })
                .run();
            let (text, code) = told(outcome);
            assert_eq!(code, Some(i32::MIN));
            assert_eq!(text, "the reduce function, at the key \"bad one\": it is bad");
            assert_eq!(std::fs::metadata(&calls).expect("called").len(), 1);
        }
    }
}

/// The message of a panic in a reduce function did not say at which of a million keys it was.
pub fn of_reduce_that_panics() {
    for isolation in BOTH {
        let job = Job::new(&Lines, Input::bytes("lines", b"good\nbad \"one\"\n").expect("memory"));
        let outcome = job
            .isolation(isolation)
            .workers(2)
            .reduce(|line, _, emit| {
                assert!(!line.starts_with(b"bad"), "it is bad");
                emit(line, 1);
                Ok(())
            })
            .run();
        let text = outcome.map(drop).expect_err("it panics").to_string();
        let expected = r#"it panicked in the reduce function, at the key "bad \"one\"": it is bad"#;
        assert!(text.contains(expected), "{text}");

        let job = Job::new(&SmallSum, Input::bytes("numbers", b"12\n345\n").expect("memory")).isolation(isolation);
        let outcome = job.workers(2).reduce(|digits, _, _| panic!("{digits} are too many")).run();
        let text = outcome.map(drop).expect_err("it panics").to_string();
        let at_key = |key| text.contains(&format!("at the key {key}: {key} are too many"));
        assert!(at_key(2) || at_key(3), "{text}");
    }
}

pub fn of_steps() {
    let (_dir, path) = crate::input_of(b"a\nbad\n");
    for isolation in BOTH {
        let job = Job::new(&Lines, Input::paths([&path])).isolation(isolation).workers(2);
        let (text, code) = told(job.iterate(&[], |_| Next::Pairs));
        assert_eq!((&text[..], code), ("the pairs that step 1 maps: there is a bad one", Some(3)));
        let job = Job::new(&Lines, Input::paths([&path])).isolation(isolation).workers(2);
        let (text, _) =
            told(job.reduce(|_, _, _| Err("no".parse::<u8>().expect_err("no number"))?).iterate(&[], |_| Next::Stop));
        let expected = |key| format!("the reduce function, at the key {key:?}: invalid digit found in string");
        assert!([expected("a"), expected("bad")].contains(&text), "{text}");
    }
}

/// Adds up numbers, one in each line, as long as the sum fits 16 bits.
struct SmallSum;

impl MapReduce for SmallSum {
    type Key = u8;
    type Value = u16;

    fn combiner(&self) -> Option<impl Fn(u16, u16) -> u16> {
        Some(|a: u16, b| a.checked_add(b).unwrap_or_else(|| ProgramError::new("it is too large").code(9).throw()))
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u16>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            out.emit(line.len() as u8, str::from_utf8(line)?.parse()?);
        }
        Ok(())
    }
}

pub fn of_combine() {
    let (_dir, path) = crate::input_of("70\n".repeat(3_000).as_bytes());
    for isolation in BOTH {
        for combine in [Combining::Both, Combining::Map, Combining::Reduce, Combining::Off] {
            for skip in [0, 10] {
                let job = Job::new(&SmallSum, Input::paths([&path])).isolation(isolation).workers(3);
                let job = job.combine(combine).skip_bad_records(skip).split_bytes(700);
                let (text, code) = told(job.run());
                assert_eq!((&text[..], code), ("the combiner: it is too large", Some(9)), "{isolation:?} {combine:?}");
            }
        }
        let job = Job::new(&SmallSum, Input::bytes("few", b"1\n2\n").expect("memory")).isolation(isolation);
        assert_eq!(job.run().expect("3 fits").0.get(1), Some(3));
    }
}
