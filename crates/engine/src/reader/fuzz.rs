//! Files that are nearly right, made from a number: whatever stands in them, reading them ends, with records or with an
//! error. `ci/fuzz.sh` tries a million of each kind; a failure names the number of its case.

use std::collections::HashMap;
use std::sync::LazyLock;

use fastrand::Rng;

use super::tests::{KINDS, expected, read, source, states};
use super::*;
use crate::pack::{COMPRESSED, Packing};

/// Runs `case` with the random numbers of each of many cases: GRISTMILL_FUZZ says how many.
fn fuzz(case: impl Fn(&mut Rng)) {
    /// Says which case it was that panicked.
    struct Number(u64);
    impl Drop for Number {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("case {}", self.0);
            }
        }
    }
    let count = std::env::var("GRISTMILL_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    for number in 0..count {
        let number = Number(number);
        case(&mut Rng::with_seed(number.0));
    }
}

fn bytes(random: &mut Rng, of: &[u8], bytes_max: usize) -> Vec<u8> {
    (0..random.usize(..bytes_max)).map(|_| *random.choice(of).expect("some")).collect()
}

/// A few bytes changed, taken away, or put in; the end cut off.
fn mutate(random: &mut Rng, file: &mut Vec<u8>) {
    for _ in 0..random.usize(..4) {
        let at = random.usize(..=file.len());
        match random.u8(..5) {
            0 | 1 if at < file.len() => file[at] ^= 1 << random.u8(..8),
            2 if at < file.len() => file[at] = *random.choice(&[0, 1, 0x7f, 0x80, 0xff]).expect("some"),
            3 => file.truncate(at),
            _ => {
                let from = random.usize(..=at);
                let to = (at + random.usize(..20)).min(file.len());
                let piece = file[from..at].to_vec();
                file.splice(at..to, piece);
            }
        }
    }
}

#[test]
fn any_bytes_are_cut_into_the_sequential_records() {
    fuzz(|random| {
        let mut content = bytes(random, b"ab\"\n\n\r,", 200);
        content.truncate(content.len() / 3 * 3);
        let records = *random.choice(&KINDS).expect("some");
        let (split_bytes, chunk_bytes) = (random.u64(1..60), random.usize(1..60));
        let states = states(&content, records);
        let found = read(Packing::Plain, &content, records, split_bytes, chunk_bytes, states);
        assert_eq!(found.expect("read"), expected(&content, records));
    });
}

#[test]
fn any_csv_has_the_rows_that_the_csv_crate_finds_in_one_piece() {
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
        let states = states(&content, Records::Csv(b','));
        let (source, _file) = source(Packing::Plain, &content).expect("plain");
        let tasks = Tasks::cut([source].into(), Records::Csv(b','), random.u64(3..60), 1 << 20, &states);
        // The mark in front of the text is looked for in one piece; no split and no chunk is as small as that.
        let mut reader = Reader::new(random.usize(3..60));
        for part in (0..tasks.len()).flat_map(|task| tasks.parts(task)) {
            reader.for_each_chunk(&tasks, part, |split| rows(split.bytes(), &mut found)).expect("read");
        }
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
        let found = read(*packing, &file, Records::Lines, random.u64(1..200), random.usize(1..500), HashMap::new());
        if file == *whole {
            assert_eq!(found.expect("whole"), expected(&CONTENT, Records::Lines));
        }
    });
}
