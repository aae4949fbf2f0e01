//! Random, nearly valid files: reading one must end, with records or with an error. `ci/fuzz.sh` tries a million of
//! each kind; a failure names the number of its case.

use std::sync::LazyLock;

use super::tests::{KINDS, expected, expected_failure, read, source};
use super::*;
use crate::input::quotes::Syntax;
use crate::input::tasks::Splits;
use crate::nearly::{bytes, fuzz, mutate};
use crate::pack::{COMPRESSED, Packing};
use crate::survey::quote_scan::scan_quotes;

#[test]
fn any_content_gives_the_sequential_records() {
    fuzz(|random| {
        let mut content = bytes(random, b"ab\"\n\n\r,", 200);
        content.truncate(content.len() / 3 * 3);
        let records = *random.choice(&KINDS).expect("some");
        let (split_bytes, chunk_bytes) = (random.u64(1..60), random.usize(1..60));
        let found = read(Packing::Plain, &content, records, split_bytes, chunk_bytes);
        assert_eq!(found, expected_failure(&content, records).map_or_else(|| Ok(expected(&content, records)), Err));
    });
}

#[test]
fn any_csv_gives_the_rows_of_the_csv_crate() {
    let rows = |text: &[u8], of: &mut Vec<csv::ByteRecord>| {
        let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        of.extend(reader.into_byte_records().map(|row| {
            let mut row = row.expect("bytes in memory");
            row.set_position(None);
            row
        }));
    };
    fuzz(|random| {
        let mut content = if random.bool() { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        content.extend(bytes(random, b"ab\"\"\n\r,", 100));
        let (mut sequential, mut found) = (Vec::new(), Vec::new());
        rows(&content, &mut sequential);
        let (source, _file) = source(Packing::Plain, &content).expect("plain");
        let mut tasks =
            Tasks::cut([source].into(), Records::Csv(Syntax::default()), Splits::of(random.u64(1..60)), 1 << 20);
        scan_quotes(&mut tasks, 2).expect("plain");
        let mut reader = Reader::new(random.usize(1..60));
        let open = expected_failure(&content, KINDS[5]);
        let mut failures = Vec::new();
        for part in (0..tasks.len()).flat_map(|task| tasks.parts(task)) {
            let mut visit = |chunk: &mut Chunk<'_>| {
                rows(chunk.bytes(), &mut found);
                Ok::<(), Failure>(())
            };
            failures
                .extend(reader.for_each_chunk(&tasks, part, &mut visit).err().map(|failure| format!("{failure:?}")));
        }
        assert_eq!(failures.first(), open.as_ref(), "{:?}", String::from_utf8_lossy(&content));
        // The rows before the one with the open quote may or may not have been seen.
        sequential.truncate(if open.is_some() { found.len() } else { usize::MAX });
        assert_eq!(found, sequential, "{:?}", String::from_utf8_lossy(&content));
    });
}

#[test]
fn any_compressed_file_is_read_or_refused() {
    static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        (0..40u32).map(|n| format!("line {n} {:x}\n", n.wrapping_mul(2_654_435_761))).collect::<String>().into()
    });
    static FILES: LazyLock<Vec<(Packing, Vec<u8>)>> = LazyLock::new(|| {
        let packings = COMPRESSED.iter().flat_map(|packing| [100, 1000].map(|bytes| (*packing, bytes)));
        packings.map(|(packing, member_bytes)| (packing, packing.pack(&CONTENT, member_bytes))).collect()
    });
    fuzz(|random| {
        let (packing, whole) = random.choice(&*FILES).expect("some");
        let mut file = whole.clone();
        mutate(random, &mut file);
        let found = read(*packing, &file, Records::Lines, random.u64(1..200), random.usize(1..500));
        if file == *whole {
            assert_eq!(found.expect("whole"), expected(&CONTENT, Records::Lines));
        }
    });
}
