//! Options for reading tables of text, and guesses about the content of their files.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gristmill::files::Verdict;
use gristmill::{Encoding, Input};
use gristmill_apps::{Control, Dialect, FileFormat, FoundFormat, Matrix};

use crate::options::inputs::INPUT;
use crate::options::text::Text;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::settings::as_options;

/// How the rows of CSV files are written.
#[derive(Args)]
pub struct Tables {
    /// Whether the first line of each CSV file names the columns. A row with more or fewer fields than that line is an
    /// error; one empty field more may stand at its end
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, help_heading = INPUT)]
    header: Header,

    /// The character between two fields, or tab [default: a tab in files named .tsv or .tab, otherwise a comma]
    #[arg(long, value_name = "CHARACTER", value_parser = character, help_heading = INPUT)]
    delimiter: Option<u8>,

    /// The character around fields that contain delimiters or line ends, or none. A quote inside such a field is
    /// written twice; text behind its closing quote is an error, and so is a quote that is not closed before the end of
    /// the file
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
    let or_none = |why: String| why.replace(", or tab", ", tab, or none");
    if text == "none" { Ok(Quote(None)) } else { character(text).map(|quote| Quote(Some(quote))).map_err(or_none) }
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

    /// Returns the first of the options that was given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--header", !matches!(self.header, Header::Auto)),
            ("--delimiter", self.delimiter.is_some()),
            ("--quote", self.quote.0 != Some(b'"')),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// Reads the matrices of a job, and tells what was guessed about their files.
    pub fn matrices<const N: usize>(&self, mut inputs: [Input; N], quiet: bool) -> Result<[Matrix; N], Failure> {
        let dialect = self.dialect().map_err(Failure::Usage)?;
        if self.given().is_some()
            && inputs.iter_mut().map(Matrix::is_npy).try_fold(true, |all, is| is.map(|is| all && is))?
        {
            self.refuse_for(".npy files")?;
        }
        let (mut matrices, mut notes) = (std::array::from_fn(|_| Matrix::default()), Vec::new());
        for (matrix, input) in matrices.iter_mut().zip(&mut inputs) {
            let (read, guesses) = Matrix::read(input, &dialect)?;
            *matrix = read;
            // A file may be in two of them.
            let new: Vec<String> = guesses.into_iter().filter(|guess| !notes.contains(guess)).collect();
            notes.extend(new);
        }
        tell_notes(&notes, quiet);
        Ok(matrices)
    }

    /// Refuses the options for an input that `is` no CSV.
    pub fn refuse_for(&self, is: &str) -> Result<(), Failure> {
        match self.given() {
            Some(option) => Err(Failure::Usage(format!("{option} is for CSV, and the input is {is}: leave it out"))),
            None => Ok(()),
        }
    }

    /// Reads an input as the binary records that its file `binary` seems to hold, although it was opened as text. A
    /// mark is a part of their first.
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
        1 => tell_notes(&[format!("1 row without a number in {columns} was left out")], quiet),
        _ => tell_notes(&[format!("{rows} rows without a number in {columns} were left out")], quiet),
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
        // An error that is not the current file's fault.
        let mut ended = None;
        input.sift(|source| {
            let FoundFormat { kind, by_name } = match FileFormat::of(source) {
                Ok(found) => found,
                Err(gristmill_apps::Error::File { what, .. }) => return Verdict::Bad(what),
                Err(error) => {
                    ended = Some(error);
                    return Verdict::Fit;
                }
            };
            let refused = |what: &str| Verdict::Bad(what.to_owned());
            match kind {
                FileFormat::Empty => {}
                FileFormat::Csv => _ = contents.csv.get_or_insert_with(|| source.name.clone()),
                FileFormat::JsonLines => _ = contents.json.get_or_insert_with(|| (source.name.clone(), by_name)),
                FileFormat::Binary(control) => {
                    let path = source.name.clone();
                    _ = contents.binary.get_or_insert(Binary { path, control });
                }
                FileFormat::Utf16 => {
                    return refused("is text in UTF-16; convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does");
                }
                FileFormat::JsonArray => {
                    return refused(
                        "is one array of JSON; an object in each line is wanted, as jq -c '.[]' writes them",
                    );
                }
            }
            Verdict::Fit
        })?;
        ended.map_or_else(|| Ok(contents), |error| Err(error.into()))
    }
}
