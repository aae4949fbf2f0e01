//! Columns of CSV files: finds them in each file, and reads their fields row by row.

use std::path::PathBuf;
use std::str::FromStr;

use csv::ByteRecord;
use gristmill::files::{Source, Verdict};
use gristmill::{Chunk, Input, ProgramError, Records};
use gristmill_os::vectors::with_widest;

use crate::error::{Error, Result, sift};
use crate::file_format::BYTE_ORDER_MARK;
use crate::heading::{Dialect, Guesses, Header, Heading, delimiter_hint, shown};
use crate::number::finite;
use crate::plain_row::PlainRow;
use crate::row::{OPEN_QUOTE, RowReader, Width};

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// A place, from 1, whatever the column is called.
    Number(usize),
    /// A name in the first line.
    Name(String),
    /// Digits: the name of a column if the first line has it, else a place.
    Digits(String),
}

impl FromStr for Column {
    type Err = String;

    /// Parses `number:3`, `name:2019`, plain digits, or a name.
    fn from_str(text: &str) -> std::result::Result<Column, String> {
        let number = |digits: &str| match digits.parse() {
            Ok(0) => Err("columns are numbered from 1".to_owned()),
            Ok(number) => Ok(number),
            Err(_) => Err(format!("{digits:?} is not the number of a column")),
        };
        if let Some(name) = text.strip_prefix("name:") {
            return Ok(Column::Name(name.to_owned()));
        }
        if let Some(digits) = text.strip_prefix("number:") {
            return number(digits).map(Column::Number);
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Column::Name(text.to_owned()));
        }
        number(text).map(|_| Column::Digits(text.to_owned()))
    }
}

impl Column {
    /// Returns the column's place, from 0, in a file with this first line. `is_header` says whether the line holds
    /// names.
    fn place(&self, line: &ByteRecord, is_header: bool, delimiter: u8) -> std::result::Result<usize, String> {
        let numbered = |number: usize| match number {
            number if (1..=line.len()).contains(&number) => Ok(number - 1),
            number => Err(format!(
                "there is no column {number}: the first line has {}{}",
                line.len(),
                delimiter_hint(line, delimiter)
            )),
        };
        match self {
            Column::Number(number) => numbered(*number),
            Column::Name(name) => match *named(line, name) {
                [place] => Ok(place),
                [] => Err(format!(
                    "there is no column {name:?}; the first line says {}{}",
                    shown(line, delimiter),
                    delimiter_hint(line, delimiter)
                )),
                [first, second, ..] => Err(format!(
                    "columns {} and {} are both called {name:?}: say which by its number",
                    first + 1,
                    second + 1
                )),
            },
            Column::Digits(digits) => {
                let number = digits.parse().unwrap_or(usize::MAX);
                match *named(line, digits) {
                    _ if !is_header => numbered(number),
                    [] => numbered(number),
                    [place] if place + 1 == number || number > line.len() => Ok(place),
                    [place, ..] => Err(format!(
                        "{digits} is the number of one column and the name of another, which is number {}: say number:{digits} \
                         or name:{digits}",
                        place + 1
                    )),
                }
            }
        }
    }

    /// Returns true if the column can only be a name in the first line.
    fn is_surely_named(&self, line: &ByteRecord) -> bool {
        match self {
            Column::Number(_) => false,
            Column::Name(_) => true,
            Column::Digits(digits) => {
                digits.parse().is_ok_and(|number: usize| number > line.len()) && !named(line, digits).is_empty()
            }
        }
    }
}

/// Returns the places of the columns with this name.
fn named(line: &ByteRecord, name: &str) -> Vec<usize> {
    let fields = line.iter().enumerate();
    fields.filter(|(_, field)| field.trim_ascii() == name.trim_ascii().as_bytes()).map(|(place, _)| place).collect()
}

/// Selected columns of CSV files.
pub(crate) struct Table<const N: usize> {
    dialect: Dialect,
    delimiter: u8,
    /// Their places in each file of the input.
    files: Vec<Places<N>>,
    /// The numbers of the first examined row that has one in each of them.
    pub first: Option<[f64; N]>,
    /// Guesses about the files, one sentence each.
    pub notes: Vec<String>,
}

/// Returns the verdict on a file with regard to quotes that are not closed.
fn open_quote(source: &Source, dialect: &Dialect) -> Verdict {
    let Some(syntax) = dialect.syntax(dialect.delimiter_of(source)) else { return Verdict::Fit };
    match source.open().and_then(|content| syntax.open_quote_line(content)) {
        Ok(None) => Verdict::Fit,
        Ok(Some(line)) => Verdict::Bad(format!("line {line}: {OPEN_QUOTE}")),
        Err(error) => error.into(),
    }
}

/// The state of a first look at the files of an input.
struct FirstLook<'d, const N: usize> {
    dialect: &'d Dialect,
    wanted: &'d [Column; N],
    /// Which of them hold numbers.
    numbers: [bool; N],
    /// The delimiter of the files with rows, once there is one.
    delimiter: Option<u8>,
    files: Vec<Places<N>>,
    first: Option<[f64; N]>,
    /// The first file that has a header, and the names of the columns in it.
    names: Option<(PathBuf, [Vec<u8>; N])>,
    guesses: Guesses,
}

impl<const N: usize> FirstLook<'_, N> {
    /// Finds the columns in a file. After an error, nothing of it is kept.
    fn add(&mut self, source: &Source) -> Result<()> {
        let failed = |why: String| Error::file(&source.name, why);
        let (dialect, wanted) = (self.dialect, self.wanted);
        let delimiter = dialect.delimiter_of(source);
        let mut was_guessed = false;
        let is_header = |line: &ByteRecord| match dialect.header {
            Header::Yes => Some(true),
            Header::No => Some(false),
            Header::Auto if wanted.iter().any(|column| column.is_surely_named(line)) => Some(true),
            Header::Auto => {
                was_guessed = true;
                None
            }
        };
        // The places of columns given by number. A column given by name needs no guess.
        let numbers: Vec<_> = { wanted.iter().zip(self.numbers) }
            .filter_map(|(column, is_number)| match column {
                Column::Number(number) if is_number => number.checked_sub(1),
                Column::Digits(digits) if is_number => digits.parse::<usize>().ok()?.checked_sub(1),
                _ => None,
            })
            .collect();
        let heading = match source.bytes {
            0 => None,
            _ => Heading::look(source, dialect, is_header, Some(&numbers))?,
        };
        let Some(heading) = heading else {
            self.files.push(Places { places: [0; N], width: Width::default(), start: 0 });
            return Ok(());
        };
        let mut places = [0; N];
        for (place, column) in places.iter_mut().zip(wanted) {
            *place = column.place(&heading.line, heading.is_header, delimiter).map_err(failed)?;
        }
        if self.delimiter.is_some_and(|before| before != delimiter) {
            let what = "its fields are separated by tabs or commas according to its name, and those of other files otherwise: set \
                        Dialect::delimiter to one for all";
            return Err(failed(what.to_owned()));
        }
        let fields = |row: &ByteRecord| places.map(|place| row.get(place).unwrap_or_default().trim_ascii().to_vec());
        if heading.is_header {
            let here = fields(&heading.line);
            let (first, there) = self.names.get_or_insert_with(|| (source.name.clone(), here.clone()));
            let differs = |at: &usize| here[*at] != there[*at] && !matches!(wanted[*at], Column::Number(_));
            if let Some(at) = (0..N).find(differs) {
                let [here, there] = [&here[at], &there[at]].map(|name| String::from_utf8_lossy(name).into_owned());
                let (number, first) = (places[at] + 1, first.display());
                return Err(failed(format!(
                    "column {number} is called {here:?} here and {there:?} in {first}: ask for it by its name, or, if both are \
                     meant, as number:{number}"
                )));
            }
        }
        if was_guessed {
            self.guesses.add(source, &heading, delimiter);
        }
        self.delimiter = Some(delimiter);
        self.files.push(Places { places, width: Width(heading.line.len()), start: heading.bytes() });
        if self.first.is_none() {
            let width = Width(heading.line.len());
            let is_whole = |row: &&ByteRecord| width.check(row.len(), row.iter().next_back() == Some(b"")).is_ok();
            self.first = heading.rows.iter().filter(is_whole).map(fields).find_map(|row| {
                let numbers = row.map(|field| finite(&field).ok());
                numbers.iter().all(Option::is_some).then(|| numbers.map(Option::unwrap_or_default))
            });
        }
        Ok(())
    }
}

/// The places of the columns in one file.
#[derive(Clone, Copy)]
struct Places<const N: usize> {
    /// The places, from 0.
    places: [usize; N],
    /// The number of fields in each row.
    width: Width,
    /// The number of bytes before the first row of data.
    start: u64,
}

/// A bad field: its index among the wanted columns, and the reason.
pub(crate) type Fault = (usize, String);

impl<const N: usize> Table<N> {
    /// Reads the first lines of all files of `input` to find the `wanted` columns. Columns flagged in `numbers` are
    /// known to hold numbers. Returns `None` if all files are empty. If bad files are set aside, a file is bad if its
    /// first line does not fit, or if a quote in it is not closed before its end.
    pub fn look(
        input: &mut Input,
        dialect: &Dialect,
        wanted: &[Column; N],
        numbers: [bool; N],
    ) -> Result<Option<Self>> {
        if dialect.header == Header::No
            && let Some(Column::Name(name)) = wanted.iter().find(|column| matches!(column, Column::Name(_)))
        {
            let what = format!("column {name:?} is asked for by its name, and the first line is said to have no names");
            return Err(Error::Question(what));
        }
        input.check(|source| open_quote(source, dialect))?;
        let mut look = FirstLook {
            dialect,
            wanted,
            numbers,
            delimiter: None,
            files: Vec::new(),
            first: None,
            names: None,
            guesses: Guesses::default(),
        };
        sift(input, |source| look.add(source))?;
        let FirstLook { delimiter, files, first, guesses, .. } = look;
        let notes = guesses.notes();
        Ok(delimiter.map(|delimiter| Table { dialect: *dialect, delimiter, files, first, notes }))
    }

    /// Returns how the records of the files end.
    pub fn records(&self) -> Records {
        self.dialect.syntax(self.delimiter).map_or(Records::Lines, Records::Csv)
    }

    /// Calls `take` with the fields of each row of a chunk, up to the first that is malformed.
    pub fn for_each_row(
        &self,
        chunk: &Chunk<'_>,
        mut take: impl FnMut([&[u8]; N]) -> Result<(), Fault>,
    ) -> Result<(), ProgramError> {
        let file = &self.files[chunk.source_number()];
        let text = chunk.bytes();
        let mut skip = file.start.saturating_sub(chunk.offset()).min(text.len() as u64) as usize;
        // Behind a header it is text.
        if chunk.offset() + skip as u64 == 0 && text.starts_with(BYTE_ORDER_MARK) {
            skip = BYTE_ORDER_MARK.len();
        }
        let outcome = if self.is_plain(&text[skip..]) {
            with_widest(|| self.plain_rows(file, text, skip, &mut take))
        } else {
            self.rows(file, text, skip, &mut take)
        };
        outcome.map_err(|(at, why)| chunk.reject(at, why))
    }

    /// Returns true if no field is quoted and every line ends in LF or CRLF.
    fn is_plain(&self, text: &[u8]) -> bool {
        self.dialect.quote.is_none_or(|quote| memchr::memchr(quote, text).is_none())
            && memchr::memchr_iter(b'\r', text).all(|at| text.get(at + 1) == Some(&b'\n'))
    }

    /// Reads rows of plain text after `skip`. An error holds the offset and the reason.
    #[inline(always)]
    fn plain_rows(
        &self,
        file: &Places<N>,
        text: &[u8],
        skip: usize,
        take: &mut impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>,
    ) -> std::result::Result<(), (usize, String)> {
        let mut at = skip;
        while at < text.len() {
            let row = PlainRow::read(text, at, self.delimiter, file.places);
            if row.count > 0 {
                file.take_row(row.fields, row.count, row.last_is_empty, take).map_err(|why| (at, why))?;
            }
            at = row.end + 1;
        }
        Ok(())
    }

    /// Reads rows of any text, like `plain_rows`.
    fn rows(
        &self,
        file: &Places<N>,
        text: &[u8],
        skip: usize,
        take: &mut impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>,
    ) -> std::result::Result<(), (usize, String)> {
        let wanted = file.places.into_iter().max().map_or(0, |last| last + 1);
        let mut rows = RowReader::new(text, skip, self.delimiter, self.dialect.quote, wanted);
        while rows.read().map_err(|why| (rows.start(), why.to_string()))? {
            let fields = file.places.map(|place| rows.field(place).unwrap_or_default());
            file.take_row(fields, rows.fields(), rows.last_is_empty(), take).map_err(|why| (rows.start(), why))?;
        }
        Ok(())
    }
}

impl<const N: usize> Places<N> {
    /// Passes the wanted fields of a row to `take`, or returns why the row cannot be read. `count` is the number of all
    /// its fields.
    #[inline(always)]
    fn take_row(
        &self,
        fields: [&[u8]; N],
        count: usize,
        last_is_empty: bool,
        take: &mut impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>,
    ) -> std::result::Result<(), String> {
        self.width.check(count, last_is_empty)?;
        take(fields).map_err(|(column, why)| format!("column {}: {why}", self.places[column] + 1))
    }
}
