//! Tables of numbers: numpy's `.npy` and CSV.

use std::io::{BufReader, Read};
use std::path::Path;

use csv::ByteRecord;
use gristmill::{Input, Source};

use crate::error::{Error, Result};
use crate::heading::{Dialect, Guesses, Header, Heading, shown};
use crate::kind::Kind;
use crate::sum::finite;

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
    /// two dimensions, else CSV, written as `dialect` says. Where files name their columns, columns of one name are one
    /// column, in the order of the first file. Also returns guesses about the files, a sentence each.
    ///
    /// # Errors
    /// A file that is neither, rows of different lengths, columns with other names than those of the files before, a field
    /// that is not a finite number; with file, line, and column.
    pub fn read(input: &mut Input, dialect: &Dialect) -> Result<(Matrix, Vec<String>)> {
        let mut all = Matrix::default();
        let mut guesses = Guesses::default();
        let mut names = None;
        for source in input.sources()? {
            let failed = |error: std::io::Error| Error::file(&source.name, error);
            let mut file = source.open().map_err(failed)?;
            let mut start = Vec::new();
            file.by_ref().take(NPY_MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
            let matrix = if start == NPY_MAGIC {
                read_npy(&source.name, file)?
            } else {
                read_csv(source, dialect, &mut names, &mut guesses)?
            };
            if matrix.columns == 0 {
                continue;
            }
            if all.columns == 0 {
                all = matrix;
            } else if all.columns != matrix.columns {
                let what = format!("{} columns, where the files before have {}", matrix.columns, all.columns);
                return Err(Error::file(&source.name, what));
            } else {
                all.rows += matrix.rows;
                all.values.extend_from_slice(&matrix.values);
            }
        }
        Ok((all, guesses.notes()))
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

/// Reads a file of CSV, whose columns are in the order of `names`, those of the first file that has any.
fn read_csv(
    source: &Source,
    dialect: &Dialect,
    names: &mut Option<ByteRecord>,
    guesses: &mut Guesses,
) -> Result<Matrix> {
    let wrong = |what: String| Error::file(&source.name, what);
    match Kind::of(source)?.kind {
        Kind::Utf16 => {
            return Err(wrong("is text in UTF-16; convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does".into()));
        }
        Kind::Binary => return Err(wrong("is neither a .npy file nor text".into())),
        _ => {}
    }
    let is_header = match dialect.header {
        Header::Yes => Some(true),
        Header::No => Some(false),
        Header::Auto => None,
    };
    let Some(heading) = Heading::look(source, dialect, |_| is_header, None)? else { return Ok(Matrix::default()) };
    if is_header.is_none() {
        guesses.add(source, &heading);
    }
    let columns = heading.line.len();
    let mut order: Vec<usize> = (0..columns).collect();
    if heading.is_header {
        let names = names.get_or_insert_with(|| heading.line.clone());
        if let Some(found) = order_of(&heading.line, names) {
            order = found;
        } else {
            let (here, before) = (shown(&heading.line), shown(names));
            return Err(wrong(format!("its columns are called {here}, and those of the files before {before}")));
        }
    }
    let file = source.open().map_err(|error| Error::file(&source.name, error))?;
    let mut reader = dialect.reader(dialect.delimiter_of(source), BufReader::with_capacity(256 << 10, file));
    let mut record = ByteRecord::new();
    let (mut values, mut first_line) = (Vec::new(), None);
    let mut header = heading.is_header;
    while reader.read_byte_record(&mut record).map_err(|error| Error::file(&source.name, error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let first_line = *first_line.get_or_insert(line);
        if std::mem::take(&mut header) {
            continue;
        }
        if record.len() != columns {
            return Err(wrong(format!("line {line}: {} columns, where line {first_line} has {columns}", record.len())));
        }
        for column in &order {
            let failed = |why| wrong(format!("line {line}, column {}: {why}", column + 1));
            values.push(finite(&record[*column]).map_err(failed)?);
        }
    }
    Ok(Matrix { rows: values.len().checked_div(columns).unwrap_or(0), columns, values })
}

/// Where each of `names` is in `line`, if it has the same names, each once or all in the same order.
fn order_of(line: &ByteRecord, names: &ByteRecord) -> Option<Vec<usize>> {
    if line.iter().map(<[u8]>::trim_ascii).eq(names.iter().map(<[u8]>::trim_ascii)) {
        return Some((0..line.len()).collect());
    }
    let place = |name: &[u8]| {
        let mut places = (0..line.len()).filter(|place| line[*place].trim_ascii() == name.trim_ascii());
        places.next().filter(|_| places.next().is_none())
    };
    let order: Vec<_> = names.iter().map(place).collect::<Option<_>>()?;
    let distinct = order.iter().collect::<std::collections::HashSet<_>>().len();
    (distinct == order.len() && order.len() == line.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> std::result::Result<Matrix, String> {
        let mut input = Input::bytes("numbers", content).expect("in memory");
        Matrix::read(&mut input, &Dialect::default()).map(|(matrix, _)| matrix).map_err(|error| error.to_string())
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
            if let Ok((matrix, _)) = Matrix::read(&mut input, &Dialect::default()) {
                assert_eq!(matrix.values.len(), matrix.rows * matrix.columns);
                assert!(matrix.values.iter().all(|value| value.is_finite()));
            }
        });
    }
}
