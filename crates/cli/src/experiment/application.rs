//! What the comparisons run: a subcommand and its input.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::generate::{Kind, Size};

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
    TileSearch,
    /// Word count of many small files
    SmallFiles,
}

/// One application and its input.
pub struct Application {
    pub subject: Subject,
    pub name: &'static str,
    /// What it reads.
    pub input: String,
    /// The subcommand with its input.
    pub arguments: Vec<String>,
    /// Its values combine.
    pub combines: bool,
    /// Its keys are small numbers.
    pub is_dense: bool,
}

impl Subject {
    /// What must be generated for it, if it reads anything.
    pub fn kind(self) -> Option<Kind> {
        Some(match self {
            Subject::WordCount => Kind::WordCount,
            Subject::Histogram => Kind::Histogram,
            Subject::LinearRegression => Kind::LinearRegression,
            Subject::StringMatch => Kind::StringMatch,
            Subject::KMeans => Kind::KMeans,
            Subject::Pca => Kind::Pca,
            Subject::SmallFiles => Kind::SmallFiles,
            Subject::TileSearch => return None,
        })
    }
}

/// What the report calls it.
pub fn name(subject: Subject) -> &'static str {
    match subject {
        Subject::WordCount => "word count",
        Subject::Histogram => "histogram",
        Subject::LinearRegression => "linear regression",
        Subject::StringMatch => "string match",
        Subject::KMeans => "k-means",
        Subject::Pca => "principal components",
        Subject::TileSearch => "tile search",
        Subject::SmallFiles => "word count of small files",
    }
}

impl Application {
    /// With these input files, as [`Generator::make`](crate::generate::Generator::make) made them, or none.
    pub fn new(subject: Subject, size: Size, paths: &[PathBuf]) -> Application {
        let path = |at: usize| paths[at].display().to_string();
        let centres = if size == Size::Small { "20" } else { "100" };
        let depth = if size == Size::Large { "22" } else { "18" };
        let (subcommand, input): (&[&str], _) = match subject {
            Subject::WordCount => (&["word-count", "--tokens", "alpha", "--top", "10"], "text"),
            Subject::Histogram => (&["histogram"], "a BMP picture"),
            Subject::LinearRegression => (&["linear-regression"], "byte pairs"),
            Subject::StringMatch => (&["string-match", "--keys"], "four keys, and words, one per line"),
            Subject::KMeans => {
                (&["kmeans", "--start", "first", "--iterations", "5", "-k", centres], "points, five steps")
            }
            Subject::Pca => (&["pca", "--print", "means"], "a square matrix: means and covariances"),
            Subject::TileSearch if size == Size::Small => (&["tile-search"], "the 8-puzzle, all of it"),
            Subject::TileSearch => {
                (&["tile-search", "--rows", "4", "--columns", "4", "--depth", depth], "the 15-puzzle, to a depth")
            }
            Subject::SmallFiles => (&["word-count", "--tokens", "alpha", "--top", "10"], "files of 1 KiB"),
        };
        let mut arguments: Vec<String> = subcommand.iter().map(|word| (*word).to_owned()).collect();
        arguments.extend((0..paths.len()).map(path));
        Application {
            subject,
            name: name(subject),
            input: match paths {
                [] => input.to_owned(),
                _ => format!("{input}, {}", indicatif::DecimalBytes(paths.iter().map(bytes).sum())),
            },
            arguments,
            combines: subject != Subject::Pca,
            is_dense: matches!(
                subject,
                Subject::Histogram | Subject::LinearRegression | Subject::StringMatch | Subject::KMeans
            ),
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
