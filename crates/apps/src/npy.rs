//! numpy's `.npy` format: a header followed by a table of numbers.
//!
//! ```text
//!  \x93NUMPY | version (2) | bytes of the header (2; 4 from version 2 on) | header | the numbers, row after row
//!
//!  {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
//! ```
//!
//! The header is a Python dictionary; numpy's `numpy.lib.format` documents the format. Only little-endian float64 in
//! C order and two dimensions are read. A header must have exactly these three entries, each once, and the file must
//! be as long as its header says; anything else is refused.

use std::io::{self, Read};

use gristmill::files::{Memory, Source};

use crate::error::{Error, Result};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The limit on a header, which takes some hundred bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Returns the header of a `.npy` file of little-endian numbers, row by row.
///
/// ```
/// let header = gristmill_apps::npy_header(2, 3);
/// assert!(header.starts_with(b"\x93NUMPY\x01\x00") && header.len() % 64 == 0);
/// ```
pub fn npy_header(rows: usize, columns: usize) -> Vec<u8> {
    let facts = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Magic, version and length take ten bytes; the numbers begin at a multiple of 64.
    let whole = (10 + facts.len() + 1).next_multiple_of(64);
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((whole as u16 - 10).to_le_bytes());
    header.extend(facts.bytes());
    header.resize(whole - 1, b' ');
    header.push(b'\n');
    header
}

/// Appends the numbers of a file to `values` and returns the number of columns, 0 if there are no rows. `file` is
/// positioned after the magic; `memory` is the limit for all of `values`.
pub(crate) fn read(source: &Source, mut file: impl Read, values: &mut Vec<f64>, memory: Memory) -> Result<usize> {
    let wrong = |what: String| Error::file(&source.name, what);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => wrong("is truncated: it ends within its header".into()),
        _ => Error::read(&source.name, error),
    };
    // 1. The header.
    let mut version = [0; 2];
    file.read_exact(&mut version).map_err(failed)?;
    let mut length = [0; 4];
    let length_bytes = match version {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        [major, minor] => {
            return Err(wrong(format!("is a .npy file of version {major}.{minor}; 1.0, 2.0 and 3.0 are understood")));
        }
    };
    file.read_exact(&mut length[..length_bytes]).map_err(failed)?;
    let header_bytes = u32::from_le_bytes(length) as usize;
    if header_bytes > HEADER_BYTES_MAX {
        return Err(wrong(format!(
            "has a header of {header_bytes} bytes; one of a table of numbers takes some hundred"
        )));
    }
    let mut header = vec![0; header_bytes];
    file.read_exact(&mut header).map_err(failed)?;
    let header = String::from_utf8_lossy(&header);
    let header = header.trim();
    let [rows, columns] = Header::parse(header).and_then(|facts| facts.sides(header)).map_err(wrong)?;
    if rows == 0 {
        // Like an empty CSV file.
        return Ok(0);
    }
    if columns == 0 {
        return Err(wrong(format!("has {rows} rows without columns")));
    }
    // 2. Check that the file has as many numbers as its header says, and that there is room for them.
    let numbers = rows.checked_mul(columns).filter(|numbers| *numbers <= u64::MAX / 8);
    let Some(numbers) = numbers else {
        return Err(wrong(format!("is damaged: no file has {rows} x {columns} numbers")));
    };
    let wanted = numbers * 8;
    let truncated = |found: u64| {
        wrong(format!("is truncated: {rows} x {columns} numbers take {wanted} bytes, and {found} follow its header"))
    };
    if source.compression().is_none() {
        let before = (MAGIC.len() + 2 + length_bytes + header_bytes) as u64;
        let found = source.bytes.saturating_sub(before);
        if found < wanted {
            return Err(truncated(found));
        }
    }
    let held = values.len() as u64 * 8;
    memory
        .allow(held.saturating_add(wanted))
        .map_err(|why| Error::too_large(&source.name, format!("to keep its {rows} x {columns} numbers {why}")))?;
    // 3. The numbers.
    let before = values.len();
    values.reserve_exact(numbers as usize);
    let mut bytes = Vec::new();
    let mut left = wanted;
    while left > 0 {
        bytes.clear();
        file.by_ref().take(left.min(64 << 10)).read_to_end(&mut bytes).map_err(failed)?;
        left -= bytes.len() as u64;
        let (eights, rest) = bytes.as_chunks::<8>();
        if eights.is_empty() || !rest.is_empty() {
            return Err(truncated(wanted - left));
        }
        for eight in eights {
            let value = f64::from_le_bytes(*eight);
            if !value.is_finite() {
                let at = values.len() - before;
                let (row, column) = (at as u64 / columns + 1, at as u64 % columns + 1);
                return Err(wrong(format!("row {row}, column {column}: {value} is not a finite number")));
            }
            values.push(value);
        }
    }
    if file.read(&mut [0]).map_err(failed)? > 0 {
        return Err(wrong(format!(
            "something follows its {rows} x {columns} numbers: a file with one array is wanted, as numpy.save writes it"
        )));
    }
    Ok(columns as usize)
}

/// The entries of a header, as written.
#[derive(Default)]
struct Header<'h> {
    descr: Option<&'h str>,
    fortran_order: Option<&'h str>,
    shape: Option<&'h str>,
}

impl<'h> Header<'h> {
    /// Parses a dictionary with the three entries. Their values stay as written.
    fn parse(header: &'h str) -> std::result::Result<Header<'h>, String> {
        let odd = || format!("has a header that numpy does not write: {}", shown(header));
        let mut facts = Header::default();
        let mut rest = header.strip_prefix('{').ok_or_else(odd)?;
        loop {
            rest = rest.trim_start();
            if let Some(behind) = rest.strip_prefix('}') {
                return if behind.is_empty() { Ok(facts) } else { Err(odd()) };
            }
            let (key, behind) = string(rest).ok_or_else(odd)?;
            let value = behind.trim_start().strip_prefix(':').ok_or_else(odd)?.trim_start();
            let place = match key {
                "descr" => &mut facts.descr,
                "fortran_order" => &mut facts.fortran_order,
                "shape" => &mut facts.shape,
                _ => return Err(odd()),
            };
            let value_bytes = value_bytes(value).ok_or_else(odd)?;
            if place.replace(&value[..value_bytes]).is_some() {
                return Err(format!("has a header that says '{key}' twice: {}", shown(header)));
            }
            rest = value[value_bytes..].trim_start();
            match rest.strip_prefix(',') {
                Some(behind) => rest = behind,
                None if rest.starts_with('}') => {}
                None => return Err(odd()),
            }
        }
    }

    /// Returns rows and columns if the array is of a supported kind.
    fn sides(&self, header: &str) -> std::result::Result<[u64; 2], String> {
        let (Some(descr), Some(order), Some(shape)) = (self.descr, self.fortran_order, self.shape) else {
            return Err(format!("has a header that lacks 'descr', 'fortran_order' or 'shape': {}", shown(header)));
        };
        if string(descr) != Some(("<f8", "")) || order != "False" {
            return Err(format!("needs little-endian float64 in C order, and is {}", shown(header)));
        }
        let inside = shape.strip_prefix('(').and_then(|shape| shape.strip_suffix(')'));
        let sides = inside.and_then(|inside| {
            let inside = inside.trim();
            let inside = inside.strip_suffix(',').unwrap_or(inside);
            // Digits only, without a sign.
            let side = |side: &str| {
                // Python 2 wrote long numbers with an L.
                let side = side.trim();
                let side = side.strip_suffix('L').unwrap_or(side);
                side.bytes().all(|byte| byte.is_ascii_digit()).then(|| side.parse::<u64>().ok())?
            };
            inside.split(',').map(side).collect::<Option<Vec<_>>>()
        });
        match sides.as_deref() {
            Some(&[rows, columns]) => Ok([rows, columns]),
            _ => Err(format!("needs two dimensions, and has the shape {}", shown(shape))),
        }
    }
}

/// Parses a string without escapes; also returns the rest of the text.
fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| "'\"".contains(*quote))?;
    let (content, rest) = text[1..].split_once(quote)?;
    (!content.contains('\\')).then_some((content, rest))
}

/// Returns the length of a value: a string, a word, or brackets and their content.
fn value_bytes(text: &str) -> Option<usize> {
    let (mut at, mut open) = (0, 0_usize);
    loop {
        let rest = &text[at..];
        match rest.chars().next()? {
            '\'' | '"' => at += rest.len() - string(rest)?.1.len(),
            '(' | '[' => {
                open += 1;
                at += 1;
            }
            ')' | ']' => {
                open = open.checked_sub(1)?;
                at += 1;
            }
            ',' | '}' if open == 0 => break,
            next => at += next.len_utf8(),
        }
    }
    let bytes = text[..at].trim_end().len();
    (bytes > 0).then_some(bytes)
}

/// Formats a header for a message.
fn shown(header: &str) -> String {
    const CHARACTERS: usize = 120;
    let text: String = header.chars().take(CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if header.chars().nth(CHARACTERS).is_some() { text + "..." } else { text }
}
