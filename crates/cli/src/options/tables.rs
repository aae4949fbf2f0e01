//! Options for reading tables of text, and guesses about the content of their files.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gristmill::{Encoding, Input};
use gristmill_apps::{Control, Dialect, FileFormat, FoundFormat};

use crate::options::inputs::INPUT;
use crate::options::text::Text;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::settings::as_options;

/// How the rows of CSV files are written.
#[derive(Args)]
pub struct Tables {
    /// Whether the first line of each CSV file names the columns. A row with more or fewer fields than that line is an error; one
    /// empty field more may stand at its end
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, help_heading = INPUT)]
    header: Header,

    /// The character between two fields, or tab [default: a tab in files named .tsv or .tab, otherwise a comma]
    #[arg(long, value_name = "CHARACTER", value_parser = character, help_heading = INPUT)]
    delimiter: Option<u8>,

    /// The character around fields that contain delimiters or line ends, or none. A quote inside such a field is written twice;
    /// text behind its closing quote is an error, and so is a quote that is not closed before the end of the file
    #[arg(long, value_name = "CHARACTER", default_value = "\"", value_parser = quote, help_heading = INPUT)]
    quote: Quote,

    #[command(flatten)]
    pub text: Text,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Header {
    /// It names the columns
    Yes,
    /// It is the first row
    No,
    /// It names them if a column is selected by name, or if one of its fields is not a number and those below it are;
    /// otherwise it is the first row. If that is a guess, a message says so
    #[default]
    Auto,
}

#[derive(Clone, Copy)]
struct Quote(Option<u8>);

fn character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\n" | b"\r" => Err("a line end ends a row".to_owned()),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("it is one ASCII character, or tab".to_owned()),
    }
}

fn quote(text: &str) -> Result<Quote, String> {
    if text == "none" { Ok(Quote(None)) } else { character(text).map(|quote| Quote(Some(quote))) }
}

impl Tables {
    /// Returns the dialect that the options define.
    pub fn dialect(&self) -> Result<Dialect, String> {
        if self.delimiter.is_some() && self.delimiter == self.quote.0 {
            return Err("--delimiter and --quote are the same character".to_owned());
        }
        let header = match self.header {
            Header::Yes => gristmill_apps::Header::Yes,
            Header::No => gristmill_apps::Header::No,
            Header::Auto => gristmill_apps::Header::Auto,
        };
        Ok(Dialect { header, delimiter: self.delimiter, quote: self.quote.0 })
    }

    /// Refuses the options for an input that `is` no CSV.
    pub fn refuse_for(&self, is: &str) -> Result<(), Failure> {
        let given = [
            ("--header", !matches!(self.header, Header::Auto)),
            ("--delimiter", self.delimiter.is_some()),
            ("--quote", self.quote.0 != Some(b'"')),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                Err(Failure::Usage(format!("{option} is for CSV, and the input is {is}: leave it out")))
            }
            None => Ok(()),
        }
    }

    /// Reads an input as the binary records that its file `binary` seems to hold, although it was opened as text. A mark is a part of
    /// their first.
    pub fn binary(&self, input: &mut Input, binary: &Path, records: &str) -> Result<(), Failure> {
        if self.text.is_named() {
            return Err(Failure::Usage(format!(
                "{} is not text in {}: name the encoding that it has, or leave out --encoding if it holds {records}",
                binary.display(),
                self.text.encoding()
            )));
        }
        *input = input.clone().encoding(Encoding::BYTES);
        Ok(())
    }
}

/// Prints guesses to standard error.
pub fn tell_notes(notes: &[String], quiet: bool) {
    notes.iter().filter(|_| !quiet).for_each(|note| tell(as_options(note)));
}

/// Prints the number of rows without a number in some columns.
pub fn tell_left_out(rows: u64, columns: &str, quiet: bool) {
    match rows {
        0 => {}
        1 => tell_notes(&[format!("1 row without a number in {columns} was left out of the sums")], quiet),
        _ => tell_notes(&[format!("{rows} rows without a number in {columns} were left out of the sums")], quiet),
    }
}

/// The apparent content of an input's files: the first of each kind.
#[derive(Default)]
pub struct Contents {
    pub csv: Option<PathBuf>,
    /// The flag says whether the file's name tells this.
    pub json: Option<(PathBuf, bool)>,
    pub binary: Option<Binary>,
}

/// A file that is not text, shown with the byte that says so.
pub struct Binary {
    pub path: PathBuf,
    control: Control,
}

impl fmt::Display for Binary {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is not text ({})", self.path.display(), self.control)
    }
}

impl Contents {
    /// Examines all files.
    pub fn of(input: &mut Input) -> Result<Contents, Failure> {
        let mut contents = Contents::default();
        for source in input.sources()? {
            let FoundFormat { kind, by_name } = FileFormat::of(source)?;
            let refused = |what: &str| {
                let what = what.to_owned();
                Failure::Application(gristmill_apps::Error::File { path: source.name.clone(), what })
            };
            match kind {
                FileFormat::Empty => {}
                FileFormat::Csv => _ = contents.csv.get_or_insert_with(|| source.name.clone()),
                FileFormat::JsonLines => _ = contents.json.get_or_insert_with(|| (source.name.clone(), by_name)),
                FileFormat::Binary(control) => {
                    let path = source.name.clone();
                    _ = contents.binary.get_or_insert(Binary { path, control });
                }
                FileFormat::Utf16 => {
                    return Err(refused("is text in UTF-16; convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does"));
                }
                FileFormat::JsonArray => {
                    return Err(refused(
                        "is one array of JSON; an object in each line is wanted, as jq -c '.[]' writes them",
                    ));
                }
            }
        }
        Ok(contents)
    }
}
