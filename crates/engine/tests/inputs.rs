//! However a file is packed, and wherever a worker dies while it reads, the result is that of its content.

#[path = "inputs/chained.rs"]
mod chained;
mod common;
#[path = "common/pack.rs"]
mod pack;

use std::collections::BTreeMap;
use std::fs;

use common::{Case, Count, Random, oracle, random_text};
use gristmill::files::Syntax;
use gristmill::internal::Moment;
use gristmill::{Bytes, Chunk, Emit, Error, Input, Job, MapReduce, Order, ProgramError, Records};
use pack::{COMPRESSED, Packing};

fn main() {
    common::run(
        &[
            ("the_result_does_not_depend_on_the_packing", the_result_does_not_depend_on_the_packing),
            ("a_worker_may_die_while_it_reads", a_worker_may_die_while_it_reads),
            (
                "damage_is_an_error_that_names_the_file_and_the_place",
                damage_is_an_error_that_names_the_file_and_the_place,
            ),
            (
                "an_archive_that_is_not_read_is_an_error_for_every_program",
                an_archive_that_is_not_read_is_an_error_for_every_program,
            ),
            ("rows_of_csv_are_never_cut", rows_of_csv_are_never_cut),
            ("progress_advances_within_a_file_that_cannot_be_cut", progress_advances_within_a_file_that_cannot_be_cut),
            (
                "the_sampling_process_is_reaped_while_the_job_is_running",
                the_sampling_process_is_reaped_while_the_job_is_running,
            ),
            ("a_message_names_the_line_of_compressed_csv", a_message_names_the_line_of_compressed_csv),
            (
                "each_input_of_a_chain_keeps_its_tag_and_its_records",
                chained::each_input_of_a_chain_keeps_its_tag_and_its_records,
            ),
            ("records_that_a_program_makes_arrive_whole", chained::records_that_a_program_makes_arrive_whole),
            ("a_format_that_no_input_can_have_is_refused", chained::a_format_that_no_input_can_have_is_refused),
            ("a_split_knows_its_lines", chained::a_split_knows_its_lines),
        ],
        &[],
    );
}

/// Slowly counts zombies of the coordinator: processes that have ended and that it has not reaped.
struct Slow;

impl MapReduce for Slow {
    type Key = u32;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let coordinator = std::os::unix::process::parent_id();
        let processes = fs::read_dir("/proc").expect("listed").flatten();
        let is_zombie = |entry: &fs::DirEntry| {
            let facts = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let after_name = facts.rsplit_once(") ").map_or("", |(_, rest)| rest);
            after_name.starts_with(&format!("Z {coordinator} "))
        };
        out.emit(0, chunk.bytes().len() as u64);
        // The sampling process may still be ending while the first splits are mapped.
        if chunk.offset() > 300_000 {
            out.emit(1, processes.filter(is_zombie).count() as u64);
        }
        Ok(())
    }
}

fn progress_advances_within_a_file_that_cannot_be_cut() {
    // The progress bar of a .gz file once stayed at 0 % until the file was read to its end.
    let mut random = Random(5);
    let content: Vec<u8> = (0..75_000).flat_map(|_| format!("{:07x}\n", random.next() >> 36).into_bytes()).collect();
    for packing in [Packing::Gzip, Packing::Zstd] {
        let (_dir, path) = packed(packing, &content);
        let stored_bytes = fs::metadata(&path).expect("it is there").len();
        let mut seen = Vec::new();
        let job = Job::new(&Slow, Input::paths([&path])).workers(2).chunk_bytes(16 << 10);
        let job = job.on_progress(|progress| seen.push((progress.done_bytes, progress.total_bytes)));
        job.run().expect("it runs");
        assert!(seen.is_sorted(), "{packing:?}: {seen:?}");
        assert!(seen.iter().all(|(done, total)| done <= total && *total == stored_bytes), "{packing:?}: {seen:?}");
        let is_between = |(done, total): &(u64, u64)| (total / 10..total * 95 / 100).contains(done);
        assert!(seen.iter().any(is_between), "{packing:?}: {seen:?}");
    }
}

fn the_sampling_process_is_reaped_while_the_job_is_running() {
    // `ps` once showed a dead child of the command for as long as the command ran.
    let (_dir, path) = common::input_of(&b"rye\n".repeat(150_000));
    let job = Job::new(&Slow, Input::paths([&path])).split_bytes(16 << 10);
    let (sums, _) = job.run().expect("it runs");
    assert_eq!((sums.get(0), sums.get(1)), (Some(600_000), Some(0)), "zombies");
}

fn an_archive_that_is_not_read_is_an_error_for_every_program() {
    // A program that had set no encoding got the bytes of a .zip of several files as its records.
    let dir = tempfile::tempdir().expect("a directory");
    let empty = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    for (name, is_read) in [("none.zip", false), ("none.data", true)] {
        let path = dir.path().join(name);
        fs::write(&path, &empty).expect("written");
        match Job::new(&Slow, Input::paths([&path])).run() {
            Ok((sums, _)) => assert!(is_read && sums.get(0) == Some(22), "{name}"),
            Err(error) => assert!(!is_read && error.to_string().contains("a zip archive without a file"), "{error}"),
        }
    }
}

fn text() -> Vec<u8> {
    random_text(&mut Random(7), 2_000_000, 5000, 8, false)
}

/// Writes `content` to a packed file in its own directory.
fn packed(packing: Packing, content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file").with_extension(packing.extension());
    fs::write(&path, packing.pack(content, 40_000)).expect("written");
    (dir, path)
}

fn the_result_does_not_depend_on_the_packing() {
    let text = text();
    let expected = oracle(&text, true, Order::ByKey, usize::MAX);
    for packing in COMPRESSED {
        let (_dir, path) = packed(packing, &text);
        let case = Case { split_bytes: 100_000, ..Case::fused(3) };
        let (pairs, summary) = case.run_with(&Count { pause: Default::default() }, &path, |job| job).expect("it runs");
        assert!(pairs == expected, "{packing:?} gave another answer");
        let is_cut = matches!(packing, Packing::Bgzip | Packing::SeekableZstd);
        assert_eq!(summary.tasks > 4, is_cut, "{packing:?}: {} tasks", summary.tasks);
    }
}

fn a_worker_may_die_while_it_reads() {
    let text = text();
    let expected = oracle(&text, true, Order::ByKey, usize::MAX);
    for packing in COMPRESSED {
        let (_dir, path) = packed(packing, &text);
        for (moment, nth) in [(Moment::Claimed, 1), (Moment::Pushed, 1), (Moment::Pushed, 40), (Moment::Flushed, 1)] {
            let case = Case { split_bytes: 100_000, ..Case::fused(2) };
            // Both workers, so that the one that reads dies.
            let ran = case.run_with(&Count { pause: Default::default() }, &path, |job| {
                job.die_at(1, moment, nth).die_at(2, moment, nth)
            });
            let (pairs, summary) = ran.expect("it runs");
            assert!(pairs == expected, "{packing:?} gave another answer");
            assert!(!summary.deaths.is_empty(), "{packing:?}: nobody died at {moment:?} {nth}");
        }
    }
}

fn damage_is_an_error_that_names_the_file_and_the_place() {
    let text = text();
    for packing in COMPRESSED {
        let (_dir, path) = packed(packing, &text);
        let whole = fs::read(&path).expect("read");
        let complaint = |file: &[u8]| {
            fs::write(&path, file).expect("written");
            let error =
                Case::fused(2).run_with(&Count { pause: Default::default() }, &path, |job| job).expect_err("damaged");
            assert!(matches!(error, Error::Compressed { .. }), "{packing:?}: {error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("cannot read {}", path.display())), "{text}");
            text
        };
        let truncated = complaint(&whole[..whole.len() / 2]);
        assert!(truncated.contains(" after byte ") && truncated.contains("truncated"), "{truncated}");
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle..middle + 100].fill(0x5a);
        let damaged = complaint(&damaged);
        assert!(damaged.contains(" after byte "), "{damaged}");
        assert!(complaint(b"").contains("it is empty"));
        assert!(complaint(b"once upon a time").contains("although its name says so"));
        let garbage = complaint(&[&whole[..], b"garbage"].concat());
        assert!(garbage.contains(" after byte 2000"), "{garbage}");
    }
}

/// Counts rows by their first field.
struct FirstFields;

impl MapReduce for FirstFields {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(chunk.bytes());
        let mut row = csv::ByteRecord::new();
        while rows.read_byte_record(&mut row).expect("bytes in memory") {
            out.emit(&row[0], 1);
        }
        Ok(())
    }
}

/// Returns rows with commas, quotes, line ends inside quotes and stray quotes outside, and without a line end at the
/// end.
fn csv_text(random: &mut Random) -> Vec<u8> {
    let mut text = b"\xef\xbb\xbf".to_vec();
    for row in 0..3000 {
        let word = random.below(50);
        let first = match random.below(6) {
            0 => format!("\"a\n{word}\n\n\""),
            1 => format!("\"say \"\"{word}\"\",\r\nplease\""),
            2 => format!("5\" by {word}"),
            3 => format!("\"{}\"", "long\n".repeat(word as usize)),
            4 => format!("\"closed\"and open {word}"),
            _ => format!("{word}"),
        };
        let end = if row == 2999 { "" } else { random.pick(&["\n", "\r\n", "\n\n"]) };
        text.extend_from_slice(format!("{first},{row},\"{{\n}}\"{end}").as_bytes());
    }
    text
}

fn rows_of_csv_are_never_cut() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let text = csv_text(random);
        let mut expected = BTreeMap::<Vec<u8>, u64>::new();
        let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text[..]);
        rows.byte_records().for_each(|row| *expected.entry(row.expect("a row")[0].to_vec()).or_default() += 1);
        for packing in [Packing::Plain, random.pick(&COMPRESSED)] {
            let (_dir, path) = packed(packing, &text);
            let job = Job::new(&FirstFields, Input::paths([&path])).records(Records::Csv(Syntax::default()));
            let job = job.workers(1 + random.below(3) as usize).split_bytes(1 + random.below(3000));
            let (counts, summary) = job.run().expect("it runs");
            let found: BTreeMap<_, _> = counts.iter().map(|(first, count)| (first.to_vec(), count)).collect();
            assert!(found == expected, "{packing:?} seed {seed}");
            assert_eq!(summary.tasks > 10, packing == Packing::Plain, "{packing:?}: {} tasks", summary.tasks);
        }
    }
}

/// Rejects a certain word.
struct Complains;

impl MapReduce for Complains {
    type Key = u8;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, _: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
        match chunk.records().find(|(_, row)| row.ends_with(b"wrong")) {
            Some((at, _)) => Err(chunk.reject(at, "this is wrong")),
            None => Ok(()),
        }
    }
}

fn a_message_names_the_line_of_compressed_csv() {
    let mut text = b"\"two\nlines\",right\r\n".repeat(30_000);
    text.extend_from_slice(b"\"two\nlines\",wrong\r\n");
    for packing in [Packing::Plain, Packing::Gzip, Packing::Bgzip, Packing::Xz] {
        let (_dir, path) = packed(packing, &text);
        let job = Job::new(&Complains, Input::paths([&path]))
            .records(Records::Csv(Syntax::default()))
            .workers(2)
            .split_bytes(50_000);
        let error = job.run().map(|_| ()).expect_err("rejected").to_string();
        assert_eq!(error, format!("{} line 60001: this is wrong", path.display()));
    }
}
