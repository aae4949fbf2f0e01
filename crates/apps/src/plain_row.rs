//! A row of CSV text without quotes, sixteen bytes at a time.
//!
//! Where a delimiter or the line end stands in sixteen bytes is a number of as many bits. So counting all fields of a
//! row, which shows that none of it is lost, takes less time than searching for the wanted ones byte by byte.

use wide::u8x16;

/// A row: selected fields, and the number of all.
pub(crate) struct PlainRow<'t, const N: usize> {
    pub fields: [&'t [u8]; N],
    /// The number of fields; 0 in an empty line.
    pub count: usize,
    pub last_is_empty: bool,
    /// The offset of the line end, or of the end of the text.
    pub end: usize,
}

impl<'t, const N: usize> PlainRow<'t, N> {
    /// Reads the row of `text` that begins at `start`, with the fields at `places`, from 0. A place that it does not
    /// have is an empty field.
    #[inline(always)]
    pub fn read(text: &'t [u8], start: usize, delimiter: u8, places: [usize; N]) -> PlainRow<'t, N> {
        let last = places.into_iter().max().unwrap_or(0);
        let mut fields: [&[u8]; N] = [&[]; N];
        let mut set = |place: usize, field: &'t [u8]| {
            let wanted = fields.iter_mut().zip(places).filter(|(_, wanted)| *wanted == place);
            wanted.for_each(|(wanted, _)| *wanted = field);
        };
        // 1. Up to the line end, find the wanted fields and count the delimiters.
        let (mut count, mut field, mut at) = (0, start, start);
        let end = loop {
            let bytes = sixteen(text, at);
            let ends = marks(bytes, b'\n');
            let mut delimiters = marks(bytes, delimiter) & !ends & ends.wrapping_sub(1);
            while delimiters != 0 && count <= last {
                let end = at + delimiters.trailing_zeros() as usize;
                set(count, &text[field..end]);
                (count, field) = (count + 1, end + 1);
                delimiters &= delimiters - 1;
            }
            count += delimiters.count_ones() as usize;
            if ends != 0 {
                break at + ends.trailing_zeros() as usize;
            }
            at += 16;
        };
        // 2. The last field ends at the line end.
        let line = text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end]);
        if count <= last {
            set(count, &text[field..start + line.len()]);
        }
        let count = if line.is_empty() { 0 } else { count + 1 };
        PlainRow { fields, count, last_is_empty: line.last().is_none_or(|byte| *byte == delimiter), end }
    }
}

/// Returns the bytes of `text` from `at` on, filled up with line ends.
#[inline(always)]
fn sixteen(text: &[u8], at: usize) -> [u8; 16] {
    match text[at..].first_chunk() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [b'\n'; 16];
            bytes[..text.len() - at].copy_from_slice(&text[at..]);
            bytes
        }
    }
}

/// Returns a number whose bit `n` says that `bytes[n]` is `byte`.
#[inline(always)]
fn marks(bytes: [u8; 16], byte: u8) -> u32 {
    u8x16::new(bytes).simd_eq(u8x16::splat(byte)).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nearly::{bytes, fuzz};

    #[test]
    fn rows_are_those_of_split() {
        fuzz(|random| {
            let text: Vec<u8> = bytes(random, b"ab,,\n", 100);
            let places = [random.usize(0..6), random.usize(0..40)];
            let mut at = 0;
            for line in text.split(|byte| *byte == b'\n') {
                let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
                let row = PlainRow::read(&text, at, b',', places);
                assert_eq!(row.end, at + line.len());
                assert_eq!(row.count, if line.is_empty() { 0 } else { fields.len() });
                assert_eq!(row.last_is_empty, fields[fields.len() - 1].is_empty());
                assert_eq!(row.fields, places.map(|place| fields.get(place).copied().unwrap_or_default()));
                at = row.end + 1;
            }
        });
    }
}
