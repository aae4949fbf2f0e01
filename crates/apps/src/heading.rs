//! The first line of a table: the names of its columns, or its first row.
//!
//! A CSV file does not say which. The caller may say it ([`Header`]); otherwise the first rows decide, and a note for the caller
//! to show says what the line was taken for. It is taken for names where that is certain (a column is asked for by a name) or
//! where one of its fields is no number and all fields below it are. Without such a sign it is a row: to count a header as a row can
//! be seen in the answer, a row that is lost cannot.

use csv::ByteRecord;
use gristmill::{Source, Syntax};

use crate::error::{Error, Result, open_to_look};
use crate::kind::extension;
use crate::sum::Number;

/// What the first line of a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// The names of the columns.
    Yes,
    /// The first row.
    No,
    /// One or the other, as the first rows look.
    #[default]
    Auto,
}

/// How tables are written.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// What the first line of each file is.
    pub header: Header,
    /// The delimiter: a comma, or a tab in files whose names end with .tsv or .tab, unless it is said here.
    pub delimiter: Option<u8>,
    /// The quote character, if fields with delimiters or line ends are quoted.
    pub quote: Option<u8>,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect { header: Header::Auto, delimiter: None, quote: Some(b'"') }
    }
}

impl Dialect {
    /// The delimiter of a file with this name.
    pub(crate) fn delimiter_of(&self, source: &Source) -> u8 {
        self.delimiter.unwrap_or_else(|| match extension(&source.name).as_deref() {
            Some("tsv" | "tab") => b'\t',
            _ => b',',
        })
    }

    /// The rows of some text.
    pub(crate) fn reader<R: std::io::Read>(&self, delimiter: u8, from: R) -> csv::Reader<R> {
        let mut reader = csv::ReaderBuilder::new();
        reader.has_headers(false).flexible(true).delimiter(delimiter);
        match self.quote {
            Some(quote) => reader.quote(quote),
            None => reader.quoting(false),
        };
        reader.from_reader(from)
    }

    /// How its rows end, if fields are separated so.
    pub(crate) fn syntax(&self, delimiter: u8) -> Option<Syntax> {
        self.quote.map(|quote| Syntax { delimiter, quote })
    }
}

/// Rows that are looked at.
const ROWS: usize = 100;

/// The first rows of a file that has any.
pub(crate) struct Heading {
    /// The first line, whatever it is.
    pub line: ByteRecord,
    /// It has the names of the columns.
    pub is_header: bool,
    /// Bytes of it, and of what is before it.
    line_bytes: u64,
    /// Rows of data below it, or with it: some.
    pub rows: Vec<ByteRecord>,
}

impl Heading {
    /// Looks at a file; `None` if it has no row. `is_header` says what the first line is, or `None` if the rows shall say; of the
    /// columns `numbers` (all of them, if there is no list) it is known that they have numbers.
    pub fn look(
        source: &Source,
        dialect: &Dialect,
        is_header: impl FnOnce(&ByteRecord) -> Option<bool>,
        numbers: Option<&[usize]>,
    ) -> Result<Option<Heading>> {
        let failed = |error: csv::Error| match error.into_kind() {
            csv::ErrorKind::Io(error) => Error::file(&source.name, error),
            other => Error::file(&source.name, format!("{other:?}")),
        };
        let file = open_to_look(source)?;
        let mut reader = dialect.reader(dialect.delimiter_of(source), file);
        let mut line = ByteRecord::new();
        if !reader.read_byte_record(&mut line).map_err(failed)? {
            return Ok(None);
        }
        let line_bytes = reader.position().byte();
        let known = is_header(&line);
        let below =
            reader.into_byte_records().take(ROWS).collect::<std::result::Result<Vec<_>, _>>().map_err(failed)?;
        let is_header = known.unwrap_or_else(|| looks_like_names(&line, &below, numbers));
        let above = (!is_header).then(|| line.clone());
        let rows = above.into_iter().chain(below).collect();
        Ok(Some(Heading { line, is_header, line_bytes, rows }))
    }

    /// Bytes before the first row of data.
    pub fn bytes(&self) -> u64 {
        if self.is_header { self.line_bytes } else { 0 }
    }
}

/// The first line cannot be a row, or says other things than the rows below.
fn looks_like_names(line: &ByteRecord, below: &[ByteRecord], numbers: Option<&[usize]>) -> bool {
    let is_number = |field: &[u8]| Number::of(field).is_ok();
    // What is a number, but none that can be summed, is bad data rather than a name.
    let is_any_number = |field: &[u8]| str::from_utf8(field.trim_ascii()).is_ok_and(|text| text.parse::<f64>().is_ok());
    let is_word = |field: &[u8]| !field.trim_ascii().is_empty() && !is_any_number(field);
    let cannot_be_a_row = match numbers {
        Some(places) => places.iter().filter_map(|place| line.get(*place)).any(is_word),
        None => line.iter().any(is_word),
    };
    cannot_be_a_row
        || line.iter().enumerate().any(|(place, field)| {
            let mut fields =
                below.iter().filter_map(|row| row.get(place)).filter(|field| !field.trim_ascii().is_empty());
            is_word(field) && fields.next().is_some_and(is_number) && fields.all(is_number)
        })
}

/// What first lines were taken for, without being told: at most one sentence for each.
#[derive(Default)]
pub(crate) struct Guesses {
    /// The first file with names, the first with a row, and how many there are of each.
    names: Option<(String, usize)>,
    rows: Option<(String, usize)>,
}

impl Guesses {
    pub fn add(&mut self, source: &Source, heading: &Heading) {
        let place = if heading.is_header { &mut self.names } else { &mut self.rows };
        match place {
            Some((_, files)) => *files += 1,
            None => *place = Some((format!("{}: the first line ({})", source.name.display(), shown(&heading.line)), 1)),
        }
    }

    /// What there is to say.
    pub fn notes(self) -> Vec<String> {
        let say = |(what, files): (String, usize), taken: &str, other: &str| {
            let more = match files {
                1 => String::new(),
                2 => " and that of 1 other file".to_owned(),
                _ => format!(" and that of {} other files", files - 1),
            };
            let was = if files == 1 { "was" } else { "were" };
            format!("{what}{more} {was} taken for {taken}; if not, say --header {other}")
        };
        let names = self.names.map(|guess| say(guess, "the names of columns", "no"));
        let rows = self.rows.map(|guess| say(guess, "data", "yes"));
        names.into_iter().chain(rows).collect()
    }
}

/// A line as a message shows it.
pub(crate) fn shown(line: &ByteRecord) -> String {
    const CHARACTERS: usize = 60;
    let fields: Vec<_> = line.iter().map(String::from_utf8_lossy).collect();
    let text: String = fields.join(",").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
