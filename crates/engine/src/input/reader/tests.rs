//! Wherever a file is cut, and whatever it is packed in, its records are those of reading it from the beginning to the end.

use proptest::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::*;
use crate::input::quotes::Syntax;
use crate::input::source::Source;
use crate::pack::{COMPRESSED, Packing};
use crate::survey::quote_scan::scan_quotes;

/// A file in memory, which is there as long as the second part of the answer is.
pub(super) fn source(packing: Packing, bytes: &[u8]) -> crate::error::Result<(Source, File)> {
    let mut file: File = memfd_create(c"test", MemfdFlags::CLOEXEC).expect("a file in memory").into();
    file.write_all(bytes).expect("written");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let name = PathBuf::from("file").with_extension(packing.extension());
    Source::recognised(name, path, bytes.len() as u64, &file).map(|source| (source, file))
}

/// The records of a file as the tasks of a job read them.
pub(super) fn read(
    packing: Packing,
    file: &[u8],
    records: Records,
    split_bytes: u64,
    chunk_bytes: usize,
) -> Result<Vec<Vec<u8>>, String> {
    let (source, _file) = source(packing, file).map_err(|error| error.to_string())?;
    let mut tasks = Tasks::cut([source].into(), records, split_bytes, 1 << 20);
    if let Records::Csv(syntax) = records {
        scan_quotes(&mut tasks, syntax, 2).map_err(|error| error.to_string())?;
    }
    let mut reader = Reader::new(chunk_bytes);
    let mut found = Vec::new();
    // The last task first: none depends on the one before.
    for task in (0..tasks.len()).rev() {
        let mut here = Vec::new();
        for part in tasks.parts(task) {
            let visit = |split: &mut Split<'_>| {
                here.extend(split.records().map(|(at, record)| (split.offset() + at as u64, record.to_vec())));
            };
            reader.for_each_chunk(&tasks, part, visit).map_err(|failure| format!("{failure:?}"))?;
        }
        found.splice(0..0, here);
    }
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "every record has a place of its own");
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// What reading from the beginning to the end gives.
pub(super) fn expected(content: &[u8], records: Records) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = match records {
        Records::Lines => content.split_inclusive(|byte| *byte == b'\n').collect(),
        Records::EndedBy(end) => content.split_inclusive(|byte| *byte == end).collect(),
        Records::Separated(separates) => {
            content.split(|byte| separates(*byte)).filter(|piece| !piece.is_empty()).collect()
        }
        Records::Fixed(width) => content.chunks(width).collect(),
        Records::WholeFile => [content].into_iter().filter(|content| !content.is_empty()).collect(),
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
const PACKINGS: [Packing; 7] =
    [Packing::Plain, Packing::Gzip, Packing::Bgzip, Packing::Zstd, Packing::SeekableZstd, Packing::Bzip2, Packing::Xz];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn wherever_the_cuts_fall_the_records_are_the_sequential_ones(
        mut content in prop::collection::vec(prop::sample::select(b"ab\"\n\n\r,".to_vec()), 0..300),
        split_bytes in 1u64..80,
        chunk_bytes in 1usize..80,
        member_bytes in 1usize..80,
    ) {
        content.truncate(content.len() / 3 * 3);
        for packing in PACKINGS {
            let file = packing.pack(&content, member_bytes);
            for records in KINDS {
                let found = read(packing, &file, records, split_bytes, chunk_bytes).expect("read");
                prop_assert_eq!(found, expected(&content, records), "{:?} {:?}", packing, records);
            }
        }
    }
}

#[test]
fn a_file_of_fixed_records_ends_with_a_whole_one() {
    for packing in PACKINGS {
        for chunk_bytes in [1, 8, 9, 100] {
            let file = packing.pack(b"aaabbbcc", 5);
            let failure = read(packing, &file, Records::Fixed(3), 4, chunk_bytes).expect_err("cut");
            assert_eq!(failure, "RecordCut { source: 0, offset: 6 }", "{packing:?}");
        }
    }
}

fn lines(packing: Packing, file: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    read(packing, file, Records::Lines, 100, 64)
}

/// Text that does not compress to nothing.
fn text() -> Vec<u8> {
    (0..60u32).map(|n| format!("line {n} {:x}\n", n.wrapping_mul(2_654_435_761))).collect::<String>().into_bytes()
}

#[test]
fn a_truncated_file_is_an_error_wherever_it_ends() {
    let text = text();
    for packing in COMPRESSED {
        let file = packing.pack(&text, 400);
        // Where a member ends, and only there, nobody can know that there was more.
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
fn a_damaged_file_is_an_error_or_does_not_matter_wherever_the_damage_is() {
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
        // The time and the name in a header, and a reserved bit here and there, are of no consequence.
        assert!(errors > whole.len() * 2, "{packing:?}: {errors} of {}", whole.len() * 3);
    }
}

#[test]
fn what_follows_a_file_is_an_error_unless_its_own_tool_ignores_it() {
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
fn a_table_that_lies_is_an_error() {
    let text = text();
    for packing in [Packing::Bgzip, Packing::SeekableZstd] {
        // One byte of the content is said to belong to the member before.
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

#[test]
fn formats_that_say_where_are_cut() {
    let content = b"one two three four five six seven eight\n".repeat(100);
    for packing in PACKINGS {
        let file = packing.pack(&content, 333);
        let (source, _file) = source(packing, &file).expect("recognised");
        let tasks = Tasks::cut([source].into(), Records::Lines, 1, 1).len();
        let is_cut = matches!(packing, Packing::Plain | Packing::Bgzip | Packing::SeekableZstd);
        assert_eq!(tasks > 10, is_cut, "{packing:?}: {tasks} tasks");
    }
}
