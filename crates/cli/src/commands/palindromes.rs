//! `gristmill palindromes`: counts the palindromes in the lines of each file.

use std::io::{self, Read};
use std::path::Path;

use clap::{Args, ValueEnum};
use gristmill::{Error, Input};

use crate::options::text::Text;
use crate::output::column::{ColumnType, Field};
use crate::output::destination::Ranking;
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::{JobRunner, refuse, too_large};
use crate::terminal::failure::Failure;

/// Count the palindromic substrings of every line, by file
///
/// Every occurrence counts, of bytes (not characters): aaa has six. The line end, LF or CRLF, belongs to no line.
/// Prints the name of each file that is not empty, and the count of all its lines.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Palindromes {
    /// How palindromes are found
    #[arg(long, value_enum, default_value_t)]
    algorithm: Algorithm,

    /// Result to print
    #[arg(long, value_enum, default_value_t)]
    print: Print,

    /// Read the file once and count it N times, to compare with a run that reads: N files of the same content
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    constant: Option<u32>,

    #[command(flatten)]
    text: Text,

    #[command(flatten)]
    ranking: Ranking,

    #[command(flatten)]
    common: CommonOptions,
}

/// How palindromes are found.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Algorithm {
    /// Brute force on lines with few palindromes, such as prose, and Manacher's algorithm on others
    #[default]
    Auto,
    /// From every centre outwards: up to the square of the length
    Brute,
    /// From every centre outwards, each byte once: time in proportion to the length of a line
    Manacher,
    /// A palindromic tree: time in proportion to the length of a line, and much more memory
    Tree,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Print {
    /// A row for each file
    #[default]
    Files,
    /// One row: the sum of all files
    Total,
}

const EXAMPLES: &str = "\
Examples:
  gristmill palindromes --top 10 books
  gristmill palindromes --print total --algorithm brute --workers 1 notes
  gristmill palindromes --chunk-bytes 64KiB -o palindromes.csv 'logs/**/*.txt'";

impl From<Algorithm> for gristmill_apps::Algorithm {
    fn from(algorithm: Algorithm) -> gristmill_apps::Algorithm {
        match algorithm {
            Algorithm::Auto => gristmill_apps::Algorithm::Auto,
            Algorithm::Brute => gristmill_apps::Algorithm::Brute,
            Algorithm::Manacher => gristmill_apps::Algorithm::Manacher,
            Algorithm::Tree => gristmill_apps::Algorithm::Tree,
        }
    }
}

/// The limit on a file that is kept in memory.
pub const CONSTANT_BYTES_MAX: u64 = 64 << 20;
/// The tasks of a job that reads nothing.
const CONSTANT_TASKS: u64 = 4096;

impl Palindromes {
    /// Returns the file that stands for all the others of --constant, and its content.
    fn constant(&self, runs: &JobRunner<'_>) -> Result<(&Path, Vec<u8>), Failure> {
        let mut named = self.common.inputs.named();
        let (Some(path), None) = (named.next(), named.next()) else {
            return Err(Failure::Usage("--constant takes one file, which stands for all the others".to_owned()));
        };
        let failed = |source| Failure::Job(Error::Input { path: path.to_owned(), source });
        let (mut text, mut input) = (Vec::new(), runs.text(&self.text)?);
        let [source] = input.sources()? else {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        };
        source.open_text().and_then(|file| file.take(CONSTANT_BYTES_MAX + 1).read_to_end(&mut text)).map_err(failed)?;
        if text.len() as u64 > CONSTANT_BYTES_MAX {
            return Err(failed(io::Error::other("the file of --constant may have 64 MiB")));
        }
        Ok((path, text))
    }

    fn print_total(&self, counts: impl Iterator<Item = u64>) -> Result<(), Failure> {
        let output =
            self.common.destination.open([ColumnType::Text.named("name"), ColumnType::Integer.named("palindromes")])?;
        let total = gristmill_apps::Palindromes::total(counts).map_err(|why| too_large("total", why))?;
        output.write([[Field::Bytes(b"total"), Field::Integer(total)]])
    }

    pub fn run(&self) -> Result<(), Failure> {
        let is_one_row = self.print == Print::Total;
        refuse("--top or --sort", is_one_row && self.ranking.is_given(), "--print total prints one row")?;
        let runs = JobRunner::new(&self.common)?;
        let program = gristmill_apps::Palindromes::new(self.algorithm.into());
        let (program, input) = match self.constant {
            None => (program, runs.text(&self.text)?),
            Some(times) => {
                let (path, text) = self.constant(&runs)?;
                (program.constant(text), Input::bytes(path, &vec![b'\n'; times as usize])?)
            }
        };
        let job = program.job(input);
        let job = match self.constant {
            None => job,
            Some(times) => job.split_bytes((u64::from(times) / CONSTANT_TASKS).max(1)),
        };
        let summary = match self.print {
            Print::Files => {
                let output = self
                    .common
                    .destination
                    .open([ColumnType::Bytes.named("file"), ColumnType::Integer.named("palindromes")])?;
                runs.write_fields(
                    job,
                    &self.ranking,
                    |_| true,
                    output,
                    |file, count| {
                        let failed = |why| too_large(String::from_utf8_lossy(file), why);
                        gristmill_apps::Palindromes::total([count])
                            .map(|count| Some([Field::Integer(count)]))
                            .map_err(failed)
                    },
                )?
            }
            Print::Total => {
                let (files, summary) = runs.run(job)?;
                self.print_total(files.iter().map(|(_, count)| count))?;
                summary
            }
        };
        runs.finish(&summary, "counts of chunks", "files")
    }
}
