//! What the comparisons run: a subcommand and its input.

use std::path::PathBuf;

use crate::generate::{Kind, Size};

/// Every application, in the order of the report.
pub const KINDS: [Kind; 7] = [
    Kind::WordCount,
    Kind::Histogram,
    Kind::LinearRegression,
    Kind::StringMatch,
    Kind::KMeans,
    Kind::Pca,
    Kind::SmallFiles,
];

/// One application and its input.
pub struct Application {
    pub kind: Kind,
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

/// What the report calls it.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::WordCount => "word count",
        Kind::Histogram => "histogram",
        Kind::LinearRegression => "linear regression",
        Kind::StringMatch => "string match",
        Kind::KMeans => "k-means",
        Kind::Pca => "principal components",
        Kind::SmallFiles => "word count of small files",
    }
}

impl Application {
    /// With these input files, as [`Generator::make`](crate::generate::Generator::make) made them.
    pub fn new(kind: Kind, size: Size, paths: &[PathBuf]) -> Application {
        let path = |at: usize| paths[at].display().to_string();
        let centres = if size == Size::Small { "20" } else { "100" };
        let (subcommand, input): (&[&str], _) = match kind {
            Kind::WordCount => (&["word-count", "--tokens", "alpha", "--top", "10"], "text"),
            Kind::Histogram => (&["histogram"], "a BMP picture"),
            Kind::LinearRegression => (&["linear-regression"], "byte pairs"),
            Kind::StringMatch => (&["string-match", "--keys"], "four keys, and words, one per line"),
            Kind::KMeans => (&["kmeans", "--start", "first", "--iterations", "5", "-k", centres], "points, five steps"),
            Kind::Pca => (&["pca", "--print", "means"], "a square matrix: means and covariances"),
            Kind::SmallFiles => (&["word-count", "--tokens", "alpha", "--top", "10"], "files of 1 KiB"),
        };
        let mut arguments: Vec<String> = subcommand.iter().map(|word| (*word).to_owned()).collect();
        arguments.extend((0..paths.len()).map(path));
        Application {
            kind,
            name: name(kind),
            input: format!("{input}, {}", indicatif::DecimalBytes(paths.iter().map(bytes).sum())),
            arguments,
            combines: kind != Kind::Pca,
            is_dense: matches!(kind, Kind::Histogram | Kind::LinearRegression | Kind::StringMatch | Kind::KMeans),
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
