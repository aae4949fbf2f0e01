//! The records of a file are the same however it is cut and packed.

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, MemfdFlags, Mode, memfd_create, mknodat};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::*;
use crate::input::encoding::Encoding;
use crate::input::quotes::Syntax;
use crate::input::source::Source;
use crate::input::tasks::Splits;
use crate::pack::{COMPRESSED, Packing};
use crate::survey::quote_scan::scan_quotes;

/// Makes a source in memory, which exists as long as the returned file.
pub(super) fn source(packing: Packing, bytes: &[u8]) -> crate::error::Result<(Source, File)> {
    source_of(packing, bytes, None)
}

fn source_of(packing: Packing, bytes: &[u8], text: Option<Encoding>) -> crate::error::Result<(Source, File)> {
    let mut file: File = memfd_create(c"test", MemfdFlags::CLOEXEC).expect("a file in memory").into();
    file.write_all(bytes).expect("written");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let name = PathBuf::from("file").with_extension(packing.extension());
    Source::recognised(name, path, bytes.len() as u64, &file, text).map(|source| (source, file))
}

/// Reads the records of a file as the tasks of a job do.
pub(super) fn read(
    packing: Packing,
    file: &[u8],
    records: Records,
    split_bytes: u64,
    chunk_bytes: usize,
) -> Result<Vec<Vec<u8>>, String> {
    let (source, _file) = source(packing, file).map_err(|error| error.to_string())?;
    read_source(source, records, split_bytes, chunk_bytes)
}

fn read_source(source: Source, records: Records, split_bytes: u64, chunk_bytes: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut tasks = Tasks::cut([source].into(), records, Splits::of(split_bytes), 1 << 20);
    {
        scan_quotes(&mut tasks, 2).map_err(|error| error.to_string())?;
    }
    let mut reader = Reader::new(chunk_bytes);
    let mut found = Vec::new();
    // The last task first, because no task depends on the one before.
    for task in (0..tasks.len()).rev() {
        let mut here = Vec::new();
        for part in tasks.parts(task) {
            let mut visit = |chunk: &mut Chunk<'_>| {
                here.extend(chunk.records().map(|(at, record)| (chunk.offset() + at as u64, record.to_vec())));
                Ok::<(), Failure>(())
            };
            reader.for_each_chunk(&tasks, part, &mut visit).map_err(|failure| format!("{failure:?}"))?;
        }
        found.splice(0..0, here);
    }
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "every record has a place of its own");
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// Returns the records of reading the content from beginning to end.
pub(super) fn expected(content: &[u8], records: Records) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = match records {
        Records::Lines => content.split_inclusive(|byte| *byte == b'\n').collect(),
        Records::EndedBy(end) => content.split_inclusive(|byte| *byte == end).collect(),
        Records::Separated(separates) => {
            content.split(|byte| separates(*byte)).filter(|piece| !piece.is_empty()).collect()
        }
        Records::Fixed(width) => content.chunks(width).collect(),
        Records::WholeFile => [content].into_iter().filter(|content| !content.is_empty()).collect(),
        Records::Prefixed => unreachable!("only Input::from_records makes them"),
        Records::Csv(syntax) => {
            let (mut state, mut rest, mut rows) = (State::default(), content, Vec::new());
            while let Some(end) = state.first_end(rest, syntax) {
                let (row, after) = rest.split_at(end);
                rows.push(row);
                rest = after;
            }
            rows.extend([rest].into_iter().filter(|rest| !rest.is_empty()));
            rows
        }
    };
    pieces.into_iter().map(|piece| records.without_end(piece).to_vec()).collect()
}

pub(super) const KINDS: [Records; 6] = [
    Records::Lines,
    Records::EndedBy(b'a'),
    Records::Separated(|byte| byte == b',' || byte == b'\n'),
    Records::Fixed(3),
    Records::WholeFile,
    Records::Csv(Syntax { delimiter: b',', quote: b'"' }),
];
const PACKINGS: [Packing; 8] = [
    Packing::Plain,
    Packing::Gzip,
    Packing::Bgzip,
    Packing::Zstd,
    Packing::SeekableZstd,
    Packing::Bzip2,
    Packing::Xz,
    Packing::Lz4,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_do_not_depend_on_the_cuts(
        mut content in prop::collection::vec(prop::sample::select(b"ab\"\n\n\r,".to_vec()), 0..300),
        split_bytes in 1u64..80,
        chunk_bytes in 1usize..80,
        member_bytes in 1usize..80,
    ) {
        content.truncate(content.len() / 3 * 3);
        for packing in PACKINGS {
            let file = packing.pack(&content, member_bytes);
            for records in KINDS {
                let found = read(packing, &file, records, split_bytes, chunk_bytes);
                let expected = expected_failure(&content, records).map_or_else(|| Ok(expected(&content, records)), Err);
                prop_assert_eq!(found, expected, "{:?} {:?}", packing, records);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The mark of UTF-8 became part of the first word, line or key, and UTF-16 was read as bytes.
    #[test]
    fn text_has_the_same_records_in_every_encoding(
        text in "[ab\"\u{e9}\n,]{0,100}",
        split_bytes in 1u64..80,
        chunk_bytes in 1usize..80,
        member_bytes in 1usize..80,
    ) {
        let marked = format!("\u{feff}{text}");
        let units: Vec<u16> = marked.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for packing in PACKINGS {
            for content in [marked.as_bytes(), &little, &big] {
                let (source, _file) =
                    source_of(packing, &packing.pack(content, member_bytes), Some(Encoding::default())).expect("text");
                for records in KINDS.into_iter().filter(|records| !matches!(records, Records::Fixed(_))) {
                    let found = read_source(source.clone(), records, split_bytes, chunk_bytes);
                    // Only the mark of UTF-8 is a part of what offsets count.
                    let counted = if content == marked.as_bytes() { content } else { text.as_bytes() };
                    let failure = expected_failure(counted, records);
                    let expected = failure.map_or_else(|| Ok(expected(text.as_bytes(), records)), Err);
                    prop_assert_eq!(found, expected, "{:?} {:?}", packing, records);
                }
            }
        }
    }
}

#[test]
fn a_file_that_ends_within_a_fixed_record_is_an_error() {
    for packing in PACKINGS {
        for chunk_bytes in [1, 8, 9, 100] {
            let file = packing.pack(b"aaabbbcc", 5);
            let failure = read(packing, &file, Records::Fixed(3), 4, chunk_bytes).expect_err("cut");
            assert_eq!(failure, "RecordCut { source: 0, offset: 6 }", "{packing:?}");
        }
    }
}

/// A quote that was never closed took the rest of the file into one row, and the job succeeded.
#[test]
fn a_quote_that_is_open_at_the_end_is_an_error_at_its_place() {
    let csv = KINDS[5];
    let long = b"aa,\"b\"\"\n\"\n".repeat(30);
    for before in [&b""[..], b"\xef\xbb\xbf", b"a\n", b"\"\n\",\"a\"\"\"\nb,5\" pipe\n", &long] {
        for open in [&b"\""[..], b"\"b\nc,d\n", b"\"\"\"\n\n", b"\"x\"\"y"] {
            let content = [before, open].concat();
            for packing in PACKINGS {
                let file = packing.pack(&content, 7);
                for (split_bytes, chunk_bytes) in [(1, 1), (3, 5), (7, 2), (50, 8), (1000, 1000)] {
                    let failure = read(packing, &file, csv, split_bytes, chunk_bytes).expect_err("it is open");
                    let expected = format!("QuoteOpen {{ source: 0, offset: {}, is_cut: false }}", before.len());
                    assert_eq!(failure, expected, "{packing:?} {split_bytes} {:?}", String::from_utf8_lossy(&content));
                    let closed = packing.pack(&[&content[..], b"\""].concat(), 7);
                    assert!(read(packing, &closed, csv, split_bytes, chunk_bytes).is_ok());
                }
            }
        }
    }
}

/// The message of a long row once said only where the row starts, and not that a quote in it is open.
#[test]
fn a_quote_that_stays_open_beyond_the_longest_row_is_named() {
    let content = [&b"a\nb,\"open\n"[..], &b"c,d\n".repeat(100)].concat();
    let (source, _file) = source(Packing::Plain, &content).expect("plain");
    for (split_bytes, chunk_bytes) in [(1, 1), (7, 50), (1000, 50)] {
        let mut tasks = Tasks::cut([source.clone()].into(), KINDS[5], Splits::of(split_bytes), 60);
        scan_quotes(&mut tasks, 2).expect("plain");
        let failures = tasks.all_parts().iter().filter_map(|part| {
            Reader::new(chunk_bytes).for_each_chunk(&tasks, part, &mut |_| Ok::<(), Failure>(())).err()
        });
        let expected = Failure::QuoteOpen { source: 0, offset: 4, is_cut: true };
        assert_eq!(failures.collect::<Vec<_>>(), [expected], "{split_bytes} {chunk_bytes}");
    }
}

/// Returns the failure of reading content in which a quote stays open.
pub(super) fn expected_failure(content: &[u8], records: Records) -> Option<String> {
    let Records::Csv(syntax) = records else { return None };
    let (mark, state) = match content.strip_prefix(MARK) {
        Some(_) => (MARK.len(), State::Field),
        None => (0, State::Record),
    };
    let offset = mark + state.open_quote(&content[mark..], syntax)?;
    Some(format!("QuoteOpen {{ source: 0, offset: {offset}, is_cut: false }}"))
}

fn lines(packing: Packing, file: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    read(packing, file, Records::Lines, 100, 64)
}

/// Returns text that compresses badly.
fn text() -> Vec<u8> {
    (0..60u32).map(|n| format!("line {n} {:x}\n", n.wrapping_mul(2_654_435_761))).collect::<String>().into_bytes()
}

#[test]
fn a_truncated_file_is_an_error_wherever_it_ends() {
    let text = text();
    for packing in COMPRESSED {
        let file = packing.pack(&text, 400);
        // A file cut at the end of a member is not recognisably truncated.
        let member_ends = packing.member_ends(&text, 400);
        for bytes in 0..file.len() {
            match lines(packing, &file[..bytes]) {
                Err(why) => {
                    assert!(why.contains("truncated") || why.contains("empty"), "{packing:?} {bytes}: {why}")
                }
                Ok(found) => {
                    assert!(expected(&text, Records::Lines).starts_with(&found[..found.len().saturating_sub(1)]));
                    assert!(member_ends.contains(&bytes), "{packing:?} ends at byte {bytes} of {}", file.len());
                }
            }
        }
    }
}

#[test]
fn damage_is_either_an_error_or_harmless() {
    let text = text();
    for packing in COMPRESSED {
        let whole = packing.pack(&text, 400);
        let mut errors = 0;
        for at in 0..whole.len() {
            for change in [1, 0x80, 0xff] {
                let mut file = whole.clone();
                file[at] ^= change;
                match lines(packing, &file) {
                    Err(_) => errors += 1,
                    Ok(found) => assert_eq!(found, expected(&text, Records::Lines), "{packing:?} byte {at}"),
                }
            }
        }
        // Changes to the time and the name in a header, and to some reserved bits, have no effect.
        assert!(errors > whole.len() * 2, "{packing:?}: {errors} of {}", whole.len() * 3);
    }
}

#[test]
fn trailing_garbage_is_an_error_unless_the_original_tool_ignores_it() {
    let text = text();
    for packing in COMPRESSED {
        let followed = |by: &[u8]| lines(packing, &[&packing.pack(&text, 400)[..], by].concat());
        for garbage in [&b"g"[..], b"garbage, and more of it", b"\0\0\0\0garbage"] {
            let why = followed(garbage).expect_err("garbage");
            assert!(why.starts_with("Compressed { source: 0, offset: "), "{packing:?}: {why}");
        }
        let padded = |zeros: usize| followed(&vec![0; zeros]).is_ok();
        match packing {
            Packing::Gzip | Packing::Bgzip | Packing::Bzip2 => assert!(padded(7) && padded(100_000), "{packing:?}"),
            Packing::Xz => assert!(padded(8) && !padded(7)),
            _ => assert!(!padded(8), "{packing:?}"),
        }
        assert_eq!(lines(packing, &packing.pack(b"", 1)), Ok(vec![]), "{packing:?}: compressed nothing is nothing");
    }
}

#[test]
fn a_wrong_table_of_frames_is_an_error() {
    let text = text();
    for packing in [Packing::Bgzip, Packing::SeekableZstd] {
        // Move one byte of content to the member before, according to the table.
        let mut file = packing.pack(&text, 400);
        let ends = packing.member_ends(&text, 400);
        let table = file.len() - 9 - 8 * ends.len();
        let [first, second] = match packing {
            Packing::Bgzip => [ends[0] - 4, ends[1] - 4],
            _ => [table + 4, table + 12],
        };
        file[first] += 1;
        file[second] -= 1;
        let why = lines(packing, &file).expect_err("a lie");
        assert!(why.contains("of its content begins a frame") || why.contains("is damaged"), "{packing:?}: {why}");
    }
}

/// If the last record ended with the last block of a bgzip file, nothing after it was once read. Its checksum was not
/// verified, and a block that declared half of its content silently lost the other half.
#[test]
fn the_last_member_is_read_to_its_end() {
    let text = b"rye\noat\n".repeat(100);
    for packing in [Packing::Bgzip, Packing::SeekableZstd] {
        let file = packing.pack(&text, text.len());
        let ends = packing.member_ends(&text, text.len());
        assert_eq!(lines(packing, &file).expect("whole").len(), 200);
        let size_at = if packing == Packing::Bgzip { ends[0] - 4 } else { file.len() - 9 - 8 * ends.len() + 4 };
        for bytes in [4, 400, 796, 804] {
            let mut file = file.clone();
            file[size_at..size_at + 4].copy_from_slice(&u32::to_le_bytes(bytes));
            let why = lines(packing, &file).expect_err("another size");
            assert!(
                why.contains("its content ends at byte") || why.contains("is damaged"),
                "{packing:?} {bytes}: {why}"
            );
        }
    }
    let file = Packing::Bgzip.pack(&text, text.len());
    let end = Packing::Bgzip.member_ends(&text, text.len())[0];
    for at in end - 8..end {
        let mut file = file.clone();
        file[at] ^= 1;
        assert!(lines(Packing::Bgzip, &file).is_err(), "byte {at} of {}", file.len());
    }
}

/// A user who could write to the folder of the input could once replace a file with a FIFO after the file had been
/// found: the worker that opened it waited for ever.
#[test]
fn a_file_replaced_by_a_fifo_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    for packing in [Packing::Plain, Packing::Gzip] {
        let path = dir.path().join(format!("a.{}", packing.extension()));
        std::fs::write(&path, packing.pack(b"rye\n", 100)).expect("written");
        let file = File::open(&path).expect("there");
        let bytes = file.metadata().expect("open").len();
        let source = Source::recognised(path.clone(), path.clone(), bytes, &file, None).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("made");
        let why = source.open().err().expect("no file").to_string();
        assert_eq!(why, "it was a file when the job began, and is none any more");
        let tasks = Tasks::cut([source].into(), Records::Lines, Splits::of(100), 100);
        let failure = Reader::new(100)
            .for_each_chunk(&tasks, &tasks.parts(0)[0], &mut |_| Ok::<(), Failure>(()))
            .expect_err("no file");
        assert!(matches!(&failure, Failure::Compressed { offset: 0, why: found, .. } if *found == why), "{failure:?}");
    }
}

#[test]
fn files_are_cut_only_if_their_format_allows_it() {
    let content = b"one two three four five six seven eight\n".repeat(100);
    for packing in PACKINGS {
        let file = packing.pack(&content, 333);
        let (source, _file) = source(packing, &file).expect("recognised");
        let tasks = Tasks::cut([source].into(), Records::Lines, Splits::of(1), 1).len();
        let is_cut = matches!(packing, Packing::Plain | Packing::Bgzip | Packing::SeekableZstd);
        assert_eq!(tasks > 10, is_cut, "{packing:?}: {tasks} tasks");
    }
}
