//! What the comparisons run: a subcommand and its input.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::commands::generate::{Kind, Size};

/// An application; in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    WordCount,
    Histogram,
    LinearRegression,
    StringMatch,
    #[value(name = "kmeans")]
    KMeans,
    Pca,
    MatrixMultiply,
    Sort,
    Palindromes,
    TileSearch,
    /// Word count of many small files
    SmallFiles,
}

/// What an application emits; of each kind a strategy may need that it is at least so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Pairs {
    /// Values that do not combine.
    Any,
    /// Values that combine.
    Combining,
    /// Values that combine, and keys that are small numbers.
    Dense,
}

/// What there is to say of an application before its input is made.
pub struct Entry {
    subject: Subject,
    pub name: &'static str,
    /// What must be generated for it, if it reads anything.
    pub kind: Option<Kind>,
    /// What it reads.
    input: &'static str,
    /// The subcommand; the input follows.
    command: &'static str,
    pairs: Pairs,
}

impl Subject {
    /// What is said of it, for an input of this size.
    pub fn entry(self, size: Size) -> Entry {
        let is_small = size == Size::Small;
        let entry = |name, kind, input, command, pairs| Entry { subject: self, name, kind, input, command, pairs };
        match self {
            Subject::WordCount => {
                let command = "word-count --tokens alpha --top 10";
                entry("word count", Some(Kind::WordCount), "text", command, Pairs::Combining)
            }
            Subject::Histogram => entry("histogram", Some(Kind::Histogram), "a BMP picture", "histogram", Pairs::Dense),
            Subject::LinearRegression => {
                let kind = Some(Kind::LinearRegression);
                entry("linear regression", kind, "byte pairs", "linear-regression", Pairs::Dense)
            }
            Subject::StringMatch => {
                let (kind, input) = (Some(Kind::StringMatch), "four keys, and words, one per line");
                entry("string match", kind, input, "string-match --keys", Pairs::Dense)
            }
            Subject::KMeans => {
                let command = match is_small {
                    true => "kmeans --start first --iterations 5 -k 20",
                    false => "kmeans --start first --iterations 5 -k 100",
                };
                entry("k-means", Some(Kind::KMeans), "points, five steps", command, Pairs::Dense)
            }
            Subject::Pca => {
                let input = "a square matrix: means and covariances";
                entry("principal components", Some(Kind::Pca), input, "pca --print means", Pairs::Any)
            }
            Subject::MatrixMultiply => {
                let command = "matrix-multiply --print summary --left";
                entry("matrix product", Some(Kind::MatrixMultiply), "two square matrices", command, Pairs::Any)
            }
            Subject::Sort => entry("sort", Some(Kind::Sort), "TeraSort records", "sort --records terasort", Pairs::Any),
            Subject::Palindromes => {
                let command = "palindromes --print total";
                entry("palindromes", Some(Kind::SmallFiles), "files of 1 KiB", command, Pairs::Combining)
            }
            Subject::TileSearch => {
                let (input, command) = match size {
                    Size::Small => ("the 8-puzzle, all of it", "tile-search"),
                    Size::Medium => ("the 15-puzzle, to a depth", "tile-search --rows 4 --columns 4 --depth 18"),
                    Size::Large => ("the 15-puzzle, to a depth", "tile-search --rows 4 --columns 4 --depth 22"),
                };
                entry("tile search", None, input, command, Pairs::Combining)
            }
            Subject::SmallFiles => {
                let command = "word-count --tokens alpha --top 10";
                entry("word count of small files", Some(Kind::SmallFiles), "files of 1 KiB", command, Pairs::Combining)
            }
        }
    }
}

/// One application and its input.
pub struct Application {
    pub subject: Subject,
    pub name: &'static str,
    /// What it reads.
    pub input: String,
    /// The subcommand with its input.
    pub arguments: Vec<OsString>,
    /// The same for the report, with the input where a user has it.
    pub shown: Vec<OsString>,
    pub pairs: Pairs,
}

impl Entry {
    /// With these input files, as [`Generator::make`](crate::commands::generate::Generator::make) made them, or none. The report
    /// shows them below `shown`.
    pub fn on(self, paths: &[PathBuf], shown: &Path) -> Application {
        let Entry { subject, name, input, command, pairs, .. } = self;
        let with = |paths: Vec<PathBuf>| -> Vec<OsString> {
            command.split(' ').map(OsString::from).chain(paths.into_iter().map(OsString::from)).collect()
        };
        let names = paths.iter().map(|path| shown.join(path.file_name().expect("a generated file has a name")));
        Application {
            subject,
            name,
            input: match paths {
                [] => input.to_owned(),
                _ => format!("{input}, {}", indicatif::DecimalBytes(paths.iter().map(bytes).sum())),
            },
            arguments: with(paths.to_vec()),
            shown: with(names.collect()),
            pairs,
        }
    }
}

/// Bytes of a file, or of the files in a directory.
fn bytes(path: &PathBuf) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len()).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |facts| facts.len()),
    }
}
