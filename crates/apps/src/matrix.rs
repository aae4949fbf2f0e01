//! Tables of numbers: numpy's `.npy` and CSV.

use std::collections::HashMap;
use std::io::Read;

use csv::ByteRecord;
use gristmill::files::{Memory, Source};
use gristmill::{Encoding, Input};

use crate::error::{Error, Result, sift};
use crate::field_stream::{Fault, Field, FieldStream, Found};
use crate::file_format::FileFormat;
use crate::heading::{Dialect, Guesses, Header, Heading, shown};
use crate::npy;
use crate::number::finite;
use crate::row::Width;

/// Numbers in rows of equal length, stored row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The numbers: row `r`, column `c` is `values[r * columns + c]`.
    pub values: Vec<f64>,
}

impl Matrix {
    /// Reads all files of `input`, one below the other: `.npy` with little-endian float64 in C order and two
    /// dimensions ([`npy`](crate::npy_header)), otherwise CSV in the given dialect. If files name their columns,
    /// columns are matched by name, in the order of the first file. Also returns guesses about the files, one
    /// sentence each. A file that is neither is set aside if bad files are skipped ([`Input::skip_bad_files`]).
    ///
    /// The numbers may take at most half of the memory that the input allows a program ([`Input::program_memory`]).
    ///
    /// # Errors
    /// A file that is neither; rows of different lengths; column names that differ from earlier files; a field that
    /// is not a finite number (with file, line, and column); more numbers than there is memory for.
    pub fn read(input: &mut Input, dialect: &Dialect) -> Result<(Matrix, Vec<String>)> {
        let mut reading = Reading {
            dialect,
            matrix: Matrix::default(),
            names: None,
            guesses: Guesses::default(),
            memory: input.program_memory().share(2),
        };
        sift(input, |source| {
            let (values, names) = (reading.matrix.values.len(), reading.names.clone());
            reading.add(source).inspect_err(|_| {
                reading.matrix.values.truncate(values);
                reading.names = names;
            })
        })?;
        let Reading { mut matrix, guesses, .. } = reading;
        matrix.rows = matrix.values.len().checked_div(matrix.columns).unwrap_or(0);
        Ok((matrix, guesses.notes()))
    }

    /// Returns whether all files of `input` are `.npy` files, so that a [`Dialect`] means nothing to them.
    ///
    /// ```
    /// use gristmill::Input;
    /// use gristmill_apps::{Matrix, npy_header};
    ///
    /// assert!(Matrix::is_npy(&mut Input::bytes("empty.npy", &npy_header(0, 3))?)?);
    /// assert!(!Matrix::is_npy(&mut Input::bytes("table.csv", b"1,2\n")?)?);
    /// # Ok::<(), gristmill_apps::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Input::sources`]. A file that cannot be read is none.
    pub fn is_npy(input: &mut Input) -> Result<bool> {
        Ok(input.sources()?.iter().all(|source| {
            let mut start = Vec::new();
            let magic = source.open().and_then(|file| file.take(npy::MAGIC.len() as u64).read_to_end(&mut start));
            magic.is_ok() && start == npy::MAGIC
        }))
    }

    /// The memory that the numbers take.
    pub(crate) fn bytes(&self) -> usize {
        self.values.len() * size_of::<f64>()
    }

    /// Returns the numbers of one row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..][..self.columns]
    }
}

/// The state while files are read into a matrix.
struct Reading<'d> {
    dialect: &'d Dialect,
    /// The number of rows is not set yet.
    matrix: Matrix,
    /// The column names of the first file that has a header.
    names: Option<ByteRecord>,
    guesses: Guesses,
    /// The memory for the numbers.
    memory: Memory,
}

impl Reading<'_> {
    /// Appends the numbers of a file. After an error, some of them may have been added.
    fn add(&mut self, source: &Source) -> Result<()> {
        let failed = |error| Error::read(&source.name, error);
        let mut file = source.open().map_err(failed)?;
        let mut start = Vec::new();
        file.by_ref().take(npy::MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
        let columns = match &start[..] {
            npy::MAGIC => npy::read(source, file, &mut self.matrix.values, self.memory)?,
            _ => {
                drop(file);
                self.add_csv(source)?
            }
        };
        match self.matrix.columns {
            _ if columns == 0 => {}
            0 => self.matrix.columns = columns,
            before if before != columns => {
                return Err(Error::file(
                    &source.name,
                    format!("{columns} columns, where the files before have {before}"),
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the numbers of a CSV file.
    fn add_csv(&mut self, source: &Source) -> Result<usize> {
        let wrong = |what: String| Error::file(&source.name, what);
        match FileFormat::of(source)?.kind {
            FileFormat::Utf16 => {
                return Err(wrong("is text in UTF-16; convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does".into()));
            }
            FileFormat::Binary(control) => {
                return Err(wrong(match source.encoding().and_then(Encoding::name) {
                    None => format!("is neither a .npy file nor text ({control})"),
                    Some(name) => format!(
                        "is not text in {name} ({control}): leave out Input::encoding if it is a .npy file, or name the encoding that it \
                         has"
                    ),
                }));
            }
            _ => {}
        }
        let is_header = match self.dialect.header {
            Header::Yes => Some(true),
            Header::No => Some(false),
            Header::Auto => None,
        };
        let Some(mut heading) = Heading::look(source, self.dialect, |_| is_header, None)? else { return Ok(0) };
        // Some programs write a delimiter after every field, also in the first line.
        let ends = |row: &ByteRecord| row.len() == heading.line.len() && row.get(row.len() - 1) == Some(b"");
        if heading.line.len() > 1 && ends(&heading.line) && heading.rows.iter().all(ends) {
            heading.line.truncate(heading.line.len() - 1);
        }
        let (columns, delimiter) = (heading.line.len(), self.dialect.delimiter_of(source));
        // The target column of each field.
        let mut places: Vec<usize> = (0..columns).collect();
        if heading.is_header {
            let names = self.names.get_or_insert_with(|| heading.line.clone());
            if let Some(found) = places_of(&heading.line, names) {
                places = found;
            } else {
                let [here, before] = [&heading.line, &*names].map(|line| shown(line, delimiter));
                return Err(wrong(format!("its columns are called {here}, and those of the files before {before}")));
            }
        }
        self.add_rows(source, heading.is_header, &places)?;
        if is_header.is_none() {
            self.guesses.add(source, &heading, delimiter);
        }
        Ok(columns)
    }

    /// Appends the rows of a CSV file field by field: a row may be of any length, and only its numbers are kept.
    /// `places` maps fields to columns.
    fn add_rows(&mut self, source: &Source, has_header: bool, places: &[usize]) -> Result<()> {
        let wrong = |line: u64, why: String| Error::file(&source.name, format!("line {line}: {why}"));
        let failed = |error| Error::read(&source.name, error);
        let file = source.open().map_err(failed)?;
        let mut fields =
            FieldStream::new(file, self.dialect.delimiter_of(source), self.dialect.quote).map_err(failed)?;
        let values = &mut self.matrix.values;
        let (mut field, mut is_header) = (Field::new(FIELD_BYTES_MAX - 1), has_header);
        // About the current row: the count of numbers before it, its fields so far, and the first error.
        let (mut before, mut count, mut fault) = (values.len(), 0, None);
        loop {
            let ends_row = match fields.read(&mut field) {
                Ok(Found::Field { ends_row }) => ends_row,
                Ok(Found::End) => return Ok(()),
                Err(Fault::Read(error)) => return Err(failed(error)),
                Err(Fault::Text(line, why)) => return Err(wrong(line, why)),
            };
            let line = fields.row_line();
            if count == 0 && !is_header {
                let too_large =
                    |why| Error::too_large(&source.name, format!("to keep its numbers up to line {line} {why}"));
                self.memory.allow((before + places.len()) as u64 * 8).map_err(too_large)?;
                values.resize(before + places.len(), 0.0);
            }
            if let Some(place) = places.get(count).filter(|_| !is_header && fault.is_none()) {
                let number = match field.content() {
                    None => Err(format!("a field of {FIELD_BYTES_MAX} bytes or more is not a number")),
                    Some(content) => finite(content),
                };
                match number {
                    Ok(number) => values[before + place] = number,
                    Err(why) => fault = Some((count + 1, why)),
                }
            }
            count += 1;
            if !ends_row {
                continue;
            }
            if !std::mem::take(&mut is_header) {
                Width(places.len()).check(count, field.is_empty()).map_err(|why| wrong(line, why))?;
                if let Some((column, why)) = fault.take() {
                    return Err(Error::file(&source.name, format!("line {line}, column {column}: {why}")));
                }
            }
            (before, count) = (values.len(), 0);
        }
    }
}

/// The length in bytes beyond which a field cannot be a number.
const FIELD_BYTES_MAX: usize = 8 << 10;

/// Returns the place in `names` of each field of `line`, if both hold the same names, each once or all in the same
/// order.
fn places_of(line: &ByteRecord, names: &ByteRecord) -> Option<Vec<usize>> {
    if line.iter().map(<[u8]>::trim_ascii).eq(names.iter().map(<[u8]>::trim_ascii)) {
        return Some((0..line.len()).collect());
    }
    let mut left: HashMap<_, _> = names.iter().enumerate().map(|(place, name)| (name.trim_ascii(), place)).collect();
    let once = left.len() == names.len() && line.len() == names.len();
    once.then(|| line.iter().map(|name| left.remove(name.trim_ascii())).collect())?
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
        let ours = [npy::npy_header(2, 3), npy("", &[1.0, -2.5, 3e2, 4.0, 5.0, 6.0])[10..].to_vec()].concat();
        assert_eq!(read(&ours), expected);
    }

    /// A delimiter at the end of the first line, too, made a column without numbers, and a shape as Python 2 writes it
    /// was refused.
    #[test]
    fn a_delimiter_may_end_every_line_and_a_shape_may_have_long_numbers() {
        let expected = Ok(Matrix { rows: 2, columns: 2, values: vec![1.0, 2.0, 3.0, 4.0] });
        for text in [&b"x,y,\n1,2,\n3,4,\n"[..], b"1,2,\n3,4,\n", b"x,y\n1,2,\n3,4,\n"] {
            assert_eq!(read(text), expected);
        }
        for text in [&b"x,y,\n1,2,\n3,4,5\n"[..], b"x,y,z\n1,2,\n", b"x,y,\n1,2,3\n3,4,\n"] {
            assert!(read(text).is_err());
        }
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 2L), }\n";
        assert_eq!(read(&npy(header, &[1.0, 2.0, 3.0, 4.0])), expected);
    }

    #[test]
    fn errors_in_a_file_are_described() {
        let cases: [(&[u8], &str); 8] = [
            (b"1,2\n3\n", "numbers: line 2: this row has 1 field, and the first line has 2"),
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
            (b"\x93NUMPY\x04\x00\x00\x00", "version 4.0; 1.0, 2.0 and 3.0 are understood"),
        ];
        for (content, expected) in cases {
            let error = read(content).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }

    /// A header with shape (0, 18446744073709551615) made the command panic, and one with two shapes was read
    /// differently than numpy reads it.
    #[test]
    fn a_npy_header_has_three_entries_once_and_matches_the_file() {
        let whole = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let numbers = [1.0, 2.0, 3.0, 4.0];
        let refused = [
            (npy(&whole("(4611686018427387904, 4)"), &numbers), "no file has 4611686018427387904 x 4 numbers"),
            (npy(&whole("(18446744073709551616, 2)"), &numbers), "needs two dimensions"),
            (npy(&whole("(2, -2)"), &numbers), "needs two dimensions"),
            (npy(&whole("(2, +2)"), &numbers), "needs two dimensions"),
            (npy(&whole("(2, 2, 2)"), &numbers), "needs two dimensions"),
            (npy(&whole("(4, 0)"), &[]), "has 4 rows without columns"),
            (npy(&whole("(2, 2), 'shape': (1, 4)"), &numbers), "says 'shape' twice"),
            (npy(&whole("(2, 2), 'order': 'C'"), &numbers), "has a header that numpy does not write"),
            (npy(&format!("{} {}", whole("(2, 2)"), whole("(2, 2)")), &numbers), "numpy does not write"),
            (npy("{'descr': '<f8', 'shape': (2, 2), }", &numbers), "lacks 'descr', 'fortran_order' or 'shape'"),
            (npy("{'descr': [('<f8', '<f8')], 'fortran_order': False, 'shape': (2, 2), }", &numbers), "little-endian"),
            (npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", &numbers), "in C order"),
            (npy("'descr': '<f8'", &numbers), "numpy does not write"),
            (npy("{'descr': '<f8", &numbers), "numpy does not write"),
            (npy(&whole("(2, 2)"), &numbers[..3]), "2 x 2 numbers take 32 bytes, and 24 follow"),
            (npy(&whole("(1, 3)"), &numbers), "something follows its 1 x 3 numbers"),
        ];
        for (file, expected) in refused {
            let why = read(&file).expect_err(expected);
            assert!(why.contains(expected), "{why}");
        }
        // An array without rows is like an empty file, whatever its number of columns.
        assert_eq!(read(&npy(&whole("(0, 18446744073709551615)"), &[])), Ok(Matrix::default()));
        // Versions 2 and 3 have a wider length field.
        for version in [2, 3] {
            let header = whole("(2, 2)");
            let mut file = b"\x93NUMPY".to_vec();
            file.extend([version, 0]);
            file.extend((header.len() as u32).to_le_bytes());
            file.extend(header.bytes().chain(numbers.iter().flat_map(|number| number.to_le_bytes())));
            assert_eq!(read(&file), Ok(Matrix { rows: 2, columns: 2, values: numbers.to_vec() }));
        }
    }

    #[test]
    fn numbers_that_take_too_much_memory_are_refused_before_they_are_read() {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100, 100), }\n";
        for content in [npy(header, &[0.5; 10_000]), b"1,2,3\n".repeat(2000)] {
            let mut input = Input::bytes("numbers", &content).expect("in memory").memory(64 << 10);
            let why = Matrix::read(&mut input, &Dialect::default()).expect_err("too many").to_string();
            assert!(why.contains("at most 32.0 KiB may be taken for it: raise Job::memory"), "{why}");
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
