//! Tables of numbers: numpy's `.npy` and CSV.

use std::io::{BufReader, Read};
use std::path::Path;

use gristmill::Input;

use crate::error::{Error, Result};

const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Numbers in rows of equal length, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Numbers in each row.
    pub columns: usize,
    /// The numbers: row `r`, column `c` is `values[r * columns + c]`.
    pub values: Vec<f64>,
}

impl Matrix {
    /// Reads every file of `input`, one below the other: `.npy` of version 1 with little-endian float64 in C order and
    /// two dimensions, else CSV, whose first line may be a header.
    ///
    /// # Errors
    /// A file that is neither, rows of different lengths, a field that is not a finite number; with file, line, and column.
    pub fn read(input: &mut Input) -> Result<Matrix> {
        let mut all = Matrix::default();
        for source in input.sources()? {
            let failed = |error: std::io::Error| Error::file(&source.name, error);
            let mut file = source.open().map_err(failed)?;
            let mut start = Vec::new();
            file.by_ref().take(NPY_MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
            let matrix = if start == NPY_MAGIC {
                read_npy(&source.name, file)?
            } else {
                read_csv(&source.name, start.chain(BufReader::with_capacity(256 << 10, file)))?
            };
            if all.rows == 0 {
                all = matrix;
            } else if all.columns != matrix.columns {
                let what = format!("{} columns, where the files before have {}", matrix.columns, all.columns);
                return Err(Error::file(&source.name, what));
            } else {
                all.rows += matrix.rows;
                all.values.extend_from_slice(&matrix.values);
            }
        }
        Ok(all)
    }

    /// The numbers of one row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..][..self.columns]
    }
}

/// Reads what follows the magic. The format is described in numpy's `numpy.lib.format`.
fn read_npy(path: &Path, mut file: impl Read) -> Result<Matrix> {
    let wrong = |what: String| Error::file(path, what);
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => wrong("is truncated: it ends within its header".into()),
        _ => wrong(error.to_string()),
    };
    let mut start = [0; 4];
    file.read_exact(&mut start).map_err(failed)?;
    let [major, minor, low, high] = start;
    if major != 1 {
        return Err(wrong(format!("is a .npy file of version {major}.{minor}; only version 1 is understood")));
    }
    let mut header = vec![0; usize::from(u16::from_le_bytes([low, high]))];
    file.read_exact(&mut header).map_err(failed)?;
    let header = String::from_utf8_lossy(&header);
    if !header.contains("'<f8'") || !header.contains("'fortran_order': False") {
        return Err(wrong(format!("needs little-endian float64 in C order, and is {}", header.trim())));
    }
    let shape =
        header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(shape, _)| shape);
    let sides: Vec<usize> = shape.split(',').filter_map(|side| side.trim().parse().ok()).collect();
    let &[rows, columns] = &sides[..] else {
        return Err(wrong(format!("needs two dimensions, and has the shape ({shape})")));
    };
    if columns == 0 {
        return Err(wrong(format!("has {rows} rows without columns")));
    }
    let wanted = rows as u128 * columns as u128 * 8;
    // As much memory as there are numbers, whatever the header says.
    let (mut values, mut bytes) = (Vec::new(), Vec::new());
    while wanted > values.len() as u128 * 8 {
        let left = wanted - values.len() as u128 * 8;
        bytes.clear();
        file.by_ref().take(left.min(64 << 10) as u64).read_to_end(&mut bytes).map_err(failed)?;
        let (eights, rest) = bytes.as_chunks::<8>();
        values.extend(eights.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        if eights.is_empty() || !rest.is_empty() {
            let found = values.len() * 8 + rest.len();
            let what =
                format!("is truncated: {rows} x {columns} numbers take {wanted} bytes, and {found} follow its header");
            return Err(wrong(what));
        }
    }
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(wrong(format!(
            "row {} column {}: {} is not a finite number",
            at / columns,
            at % columns,
            values[at]
        )));
    }
    Ok(Matrix { rows, columns, values })
}

/// What stands before the little-endian numbers of a `.npy` file, row after row.
///
/// ```
/// let header = gristmill_apps::npy_header(2, 3);
/// assert!(header.starts_with(b"\x93NUMPY\x01\x00") && header.len() % 64 == 0);
/// ```
pub fn npy_header(rows: usize, columns: usize) -> Vec<u8> {
    let facts = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Magic, version and length take ten bytes; the numbers begin at a multiple of 64.
    let whole = (10 + facts.len() + 1).next_multiple_of(64);
    let mut header = NPY_MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((whole as u16 - 10).to_le_bytes());
    header.extend(facts.bytes());
    header.resize(whole - 1, b' ');
    header.push(b'\n');
    header
}

fn read_csv(path: &Path, text: impl Read) -> Result<Matrix> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = csv::ByteRecord::new();
    let (mut values, mut columns, mut first_line) = (Vec::new(), 0, 0);
    let mut first = true;
    while reader.read_byte_record(&mut record).map_err(|error| Error::file(path, error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let is_header = std::mem::take(&mut first) && record.iter().all(|field| number(field).is_none());
        if is_header {
            (columns, first_line) = (record.len(), line);
            continue;
        }
        if columns == 0 {
            (columns, first_line) = (record.len(), line);
        } else if record.len() != columns {
            let what = format!("line {line}: {} columns, where line {first_line} has {columns}", record.len());
            return Err(Error::file(path, what));
        }
        for (column, field) in record.iter().enumerate() {
            let failed = |why| Error::file(path, format!("line {line}, column {}: {why}", column + 1));
            values.push(finite(field).map_err(failed)?);
        }
    }
    let rows = values.len().checked_div(columns).unwrap_or(0);
    Ok(Matrix { rows, columns, values })
}

/// The finite number that a CSV field says, spaces around it left out.
pub(crate) fn number(field: &[u8]) -> Option<f64> {
    let field = field.trim_ascii();
    // Most fields are whole numbers of few digits.
    if let [b'0'..=b'9', ..] = field
        && field.len() <= 15
        && field.iter().all(u8::is_ascii_digit)
    {
        return Some(field.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0')) as f64);
    }
    std::str::from_utf8(field).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The same, or why there is none.
pub(crate) fn finite(field: &[u8]) -> std::result::Result<f64, String> {
    number(field).ok_or_else(|| format!("{} is not a finite number", quoted(field)))
}

/// A field as a message shows it.
fn quoted(field: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&field[..field.len().min(40)]);
    format!("{shown:?}{}", if field.len() > 40 { "..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> std::result::Result<Matrix, String> {
        let mut input = Input::bytes("numbers", content).expect("in memory");
        Matrix::read(&mut input).map_err(|error| error.to_string())
    }

    fn npy(header: &str, values: &[f64]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    #[test]
    fn csv_and_npy_of_the_same_numbers_are_the_same_matrix() {
        let expected = Ok(Matrix { rows: 2, columns: 3, values: vec![1.0, -2.5, 3e2, 4.0, 5.0, 6.0] });
        assert_eq!(read(b"1, -2.5,3e2\r\n4,5,6"), expected);
        assert_eq!(read(b"a,b,c\n1,-2.5,300\n4,5,6\n"), expected);
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n";
        assert_eq!(read(&npy(header, &[1.0, -2.5, 3e2, 4.0, 5.0, 6.0])), expected);
        let ours = [npy_header(2, 3), npy("", &[1.0, -2.5, 3e2, 4.0, 5.0, 6.0])[10..].to_vec()].concat();
        assert_eq!(read(&ours), expected);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        let cases: [(&[u8], &str); 8] = [
            (b"1,2\n3\n", "numbers: line 2: 1 columns, where line 1 has 2"),
            (b"x,y\n1,2\n3,abc\n", "numbers: line 3, column 2: \"abc\" is not a finite number"),
            (b"1,2\n3,\n", "numbers: line 2, column 2: \"\" is not a finite number"),
            (b"1,nan\n", "numbers: line 1, column 2: \"nan\" is not a finite number"),
            (
                &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }", &[]),
                "needs little-endian float64 in C order",
            ),
            (
                &npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", &[]),
                "needs two dimensions, and has the shape (3,)",
            ),
            (
                &npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", &[1.0]),
                "is truncated: 2 x 2 numbers take 32 bytes, and 8 follow",
            ),
            (b"\x93NUMPY\x02\x00\x00\x00", "version 2.0; only version 1 is understood"),
        ];
        for (content, expected) in cases {
            let error = read(content).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::nearly::{fuzz, mutate};

    #[test]
    fn any_table_is_refused_or_has_rows_of_one_length() {
        let header = b"\x93NUMPY\x01\x00\x3e\x00{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}    \n";
        let npy = [&header[..], &[0; 32]].concat();
        let csv = b"a,b\r\n1,-2.5\n\"3\",4e2\n".to_vec();
        fuzz(|random| {
            let mut file = if random.bool() { npy.clone() } else { csv.clone() };
            mutate(random, &mut file);
            let mut input = Input::bytes("numbers", &file).expect("in memory");
            if let Ok(matrix) = Matrix::read(&mut input) {
                assert_eq!(matrix.values.len(), matrix.rows * matrix.columns);
                assert!(matrix.values.iter().all(|value| value.is_finite()));
            }
        });
    }
}
