//! Inputs of several kinds in one job, and records that the program makes.

use std::collections::BTreeMap;
use std::fs;

use gristmill::internal::Moment;
use gristmill::{Chunk, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Records};

use crate::common::Random;

/// Counts records by the tag of their input.
struct Tagged;

impl MapReduce for Tagged {
    type Key = (u32, Vec<u8>);
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(u32, Vec<u8>), u64>) -> Result<(), ProgramError> {
        chunk.records().for_each(|(_, record)| out.emit((chunk.tag(), record), 1));
        Ok(())
    }
}

type Counts = BTreeMap<(u32, Vec<u8>), u64>;

/// Runs the job in both isolations with 2 and 7 workers, whole and with workers killed, and compares.
fn check(input: &Input, expected: &Counts) {
    for (isolation, workers, kills) in
        [(Isolation::Process, 2, 0), (Isolation::Process, 7, 3), (Isolation::Thread, 2, 0), (Isolation::Thread, 7, 0)]
    {
        let job = Job::new(&Tagged, input.clone()).isolation(isolation).workers(workers).split_bytes(3_000);
        let moments = [Moment::Claimed, Moment::Flushed, Moment::Committed];
        let kill = |job: Job<'static, Tagged>, number: usize| job.die_at(number + 1, moments[number], 1);
        let (counts, summary) = (0..kills).fold(job.chunk_bytes(700), kill).run().expect("it runs");
        let counts: Counts = counts.iter().map(|((tag, record), count)| ((tag, record.to_vec()), count)).collect();
        assert!(counts == *expected, "{isolation:?} {workers}");
        assert_eq!(summary.deaths.is_empty(), kills == 0 || expected.is_empty(), "{:?}", summary.deaths);
    }
}

fn count<'r>(counts: &mut Counts, tag: u32, records: impl Iterator<Item = &'r [u8]>) {
    records.for_each(|record| *counts.entry((tag, record.to_vec())).or_default() += 1);
}

/// Records of any bytes; some are empty, some longer than a chunk.
fn records(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let bytes_max = |random: &mut Random| if random.next().is_multiple_of(50) { 2_000 } else { 4 };
    let record = |random: &mut Random| {
        let bytes = random.next() % bytes_max(random);
        (0..bytes).map(|_| (random.next() % 3 * 5) as u8).collect()
    };
    (0..count).map(|_| record(random)).collect()
}

pub fn each_input_of_a_chain_keeps_its_tag_and_its_records() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut random = Random(11);
    let mut text = |count: usize, end: u8| -> Vec<u8> {
        (0..count).flat_map(|_| [b'a' + (random.next() % 20) as u8, b'z', end]).collect()
    };
    let (lines, more, ended) = (text(5_000, b'\n'), text(100, b'\n'), text(5_000, 0));
    for (name, content) in [("a", &lines), ("b", &more)] {
        fs::write(dir.path().join(name), content).expect("written");
    }
    let made = records(&mut random, 5_000);
    // The folder is read twice, with two tags: once for each side of a join with itself.
    let input = Input::paths([dir.path()])
        .chain(Input::bytes("ended", &ended).expect("made").tagged(1).records(Records::EndedBy(0)))
        .chain(Input::from_records("made", &made).expect("made").records(Records::Lines).tagged(2))
        .chain(Input::paths([dir.path()]).records(Records::Fixed(3)).tagged(3));
    let mut expected = Counts::new();
    for file in [&lines, &more] {
        count(&mut expected, 0, file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()));
        count(&mut expected, 3, file.chunks(3));
    }
    count(&mut expected, 1, ended.split(|byte| *byte == 0).filter(|record| !record.is_empty()));
    count(&mut expected, 2, made.iter().map(Vec::as_slice));
    check(&input, &expected);
}

pub fn records_that_a_program_makes_arrive_whole() {
    for seed in 0..4 {
        let made = records(&mut Random(seed), 8_000 * (seed as usize % 2));
        let (sender, receiver) = std::sync::mpsc::sync_channel(2);
        let input = std::thread::scope(|scope| {
            scope.spawn(|| made.iter().for_each(|record| sender.send(record).expect("received")));
            Input::from_records("made", receiver.into_iter().take(made.len())).expect("made")
        });
        let mut expected = Counts::new();
        count(&mut expected, 0, made.iter().map(Vec::as_slice));
        check(&input, &expected);
    }
}

pub fn a_format_that_no_input_can_have_is_refused() {
    let input = Input::bytes("x", b"abc").expect("made").chain(Input::paths(["/dev/null"]).records(Records::Fixed(0)));
    let error = Job::new(&Tagged, input).run().map(drop).expect_err("no record has 0 bytes");
    assert!(matches!(&error, Error::Setting(what) if what.contains("records of 0 bytes")), "{error}");
}

/// Says on which line the first `x` stands, by the number of the split's line and by counting.
struct LineOfX;

impl MapReduce for LineOfX {
    type Key = u64;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, ()>) -> Result<(), ProgramError> {
        for (at, _) in chunk.bytes().iter().enumerate().filter(|(_, byte)| **byte == b'x') {
            out.emit(chunk.line(at).expect("lines"), ());
        }
        Ok(())
    }
}

pub fn a_split_knows_its_lines() {
    let mut random = Random(3);
    let text: Vec<u8> = (0..20_000).map(|_| b"a\nb\n\nccccccccccccccccccx"[(random.next() % 22) as usize]).collect();
    let mut expected: Vec<u64> = Vec::new();
    for (line, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
        expected.extend(bytes.iter().filter(|byte| **byte == b'x').map(|_| line as u64 + 1));
    }
    let job = Job::new(&LineOfX, Input::bytes("text", &text).expect("made")).split_bytes(1_000).chunk_bytes(300);
    let (lines, _) = job.workers(3).run().expect("it runs");
    assert!(lines.iter().map(|(line, ())| line).eq(expected));
}
