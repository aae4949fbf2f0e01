//! TeraSort records made from a seed, and a check that they are sorted, after `gensort -a` and `valsort`.
//!
//! ```text
//!  | key, 10 printable | 2 spaces | number of the record, 32 hex digits | 2 spaces | 52 letters | CR LF |
//! ```
//!
//! A record depends only on the seed and its number, so any part can be generated anywhere. The checksum is a sum
//! over records and does not depend on their order.

use std::io::{self, Read, Write};

use gristmill_apps::{TERA_KEY_BYTES, TERA_RECORD_BYTES};

/// Writes the records with the given numbers.
pub fn generate(seed: u64, numbers: std::ops::Range<u64>, to: &mut impl Write) -> io::Result<()> {
    for number in numbers {
        to.write_all(&record(seed, number))?;
    }
    Ok(())
}

fn record(seed: u64, number: u64) -> [u8; TERA_RECORD_BYTES] {
    let mut record = [b' '; TERA_RECORD_BYTES];
    let random = u128::from(mix(seed ^ mix(number))) << 64 | u128::from(mix(seed.wrapping_add(number) ^ 0x5bf0_3635));
    let mut digits = random;
    for byte in &mut record[..TERA_KEY_BYTES] {
        *byte = b' ' + (digits % 95) as u8;
        digits /= 95;
    }
    for (at, byte) in record[12..44].iter_mut().enumerate() {
        let digit = if at < 16 { 0 } else { number >> (4 * (31 - at)) & 15 };
        *byte = b"0123456789ABCDEF"[digit as usize];
    }
    for (at, byte) in record[46..98].iter_mut().enumerate() {
        *byte = b'A' + ((random as u64 >> (at / 4)) % 26) as u8;
    }
    record[98..].copy_from_slice(b"\r\n");
    record
}

/// The finalizer of splitmix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The findings about a file of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validated {
    /// The number of whole records.
    pub records: u64,
    /// The sum of the CRC-32 of every record. Files with equal records have equal checksums.
    pub checksum: u64,
    /// The number of records whose key equals the previous one.
    pub duplicates: u64,
    /// The number of the first record, from 0, whose key is smaller than the previous one.
    pub unordered: Option<u64>,
    /// The number of bytes after the last whole record.
    pub rest_bytes: usize,
}

/// Counts records, computes their checksum, and finds the first that is out of order.
pub fn validate(mut from: impl Read) -> io::Result<Validated> {
    let mut found = Validated::default();
    let mut buffer = vec![0; TERA_RECORD_BYTES * 4096];
    let mut before = [0; TERA_KEY_BYTES];
    loop {
        let filled = fill(&mut from, &mut buffer)?;
        let (records, rest) = buffer[..filled].as_chunks::<TERA_RECORD_BYTES>();
        for record in records {
            let key = *record.first_chunk().expect("a record has a key");
            if found.records > 0 {
                found.duplicates += u64::from(key == before);
                if key < before && found.unordered.is_none() {
                    found.unordered = Some(found.records);
                }
            }
            before = key;
            found.records += 1;
            found.checksum = found.checksum.wrapping_add(u64::from(crc32fast::hash(record)));
        }
        if filled < buffer.len() {
            found.rest_bytes = rest.len();
            return Ok(found);
        }
    }
}

/// Reads until the buffer is full or the input ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_order_a_changed_byte_and_a_torn_end_are_found() {
        let mut made = Vec::new();
        generate(1, 0..20_000, &mut made).expect("a Vec takes all");
        assert_eq!(made.len(), 2_000_000);
        let (records, _) = made.as_chunks_mut::<TERA_RECORD_BYTES>();
        let checksum = validate(records.as_flattened()).expect("read").checksum;
        records.sort();
        let sorted = validate(records.as_flattened()).expect("read");
        let expected = Validated { records: 20_000, checksum, ..Validated::default() };
        assert_eq!(sorted, expected);
        records.swap(5000, 5001);
        assert_eq!(validate(records.as_flattened()).expect("read").unordered, Some(5001));
        records.swap(5000, 5001);
        records[7][50] ^= 1;
        assert_ne!(validate(records.as_flattened()).expect("read").checksum, checksum);
        assert_eq!(validate(&made[..150]).expect("read").rest_bytes, 50);
    }
}
