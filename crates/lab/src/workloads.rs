//! The applications as command lines, each with an input.

use crate::generate::{Dataset, Size};

/// An application as experiments run it.
pub struct Workload {
    /// The name, one word, for command lines.
    pub name: &'static str,
    pub title: &'static str,
    /// The input to generate, if it reads any.
    pub input: Option<Dataset>,
    /// The description of the input.
    pub reads: fn(Size) -> &'static str,
    /// The subcommand and its options; the input follows.
    pub command: fn(Size) -> &'static str,
    pub pairs: PairKind,
}

/// The kind of pairs that map emits. A strategy may need a kind, which includes all later kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum PairKind {
    /// Values without a combiner.
    Any,
    /// Values with a combiner.
    Combining,
    /// Values with a combiner, and keys that are small numbers.
    Dense,
}

/// All workloads, in the order of reports.
pub static WORKLOADS: [Workload; 11] = [
    Workload {
        name: "word-count",
        title: "word count",
        input: Some(Dataset::WordCount),
        reads: |_| "text",
        command: |_| "word-count --tokens alpha --top 10",
        pairs: PairKind::Combining,
    },
    Workload {
        name: "small-files",
        title: "word count of small files",
        input: Some(Dataset::SmallFiles),
        reads: |_| "files of 1 KiB",
        command: |_| "word-count --tokens alpha --top 10",
        pairs: PairKind::Combining,
    },
    Workload {
        name: "histogram",
        title: "histogram",
        input: Some(Dataset::Histogram),
        reads: |_| "a BMP picture",
        command: |_| "histogram",
        pairs: PairKind::Dense,
    },
    Workload {
        name: "linear-regression",
        title: "linear regression",
        input: Some(Dataset::LinearRegression),
        reads: |_| "byte pairs",
        command: |_| "linear-regression",
        pairs: PairKind::Dense,
    },
    Workload {
        name: "string-match",
        title: "string match",
        input: Some(Dataset::StringMatch),
        reads: |_| "four keys, and words, one per line",
        command: |_| "string-match --keys",
        pairs: PairKind::Dense,
    },
    Workload {
        name: "kmeans",
        title: "k-means",
        input: Some(Dataset::KMeans),
        reads: |_| "points, five steps",
        command: |size| match size {
            Size::Small => "kmeans --start first --iterations 5 -k 20",
            Size::Medium | Size::Large => "kmeans --start first --iterations 5 -k 100",
        },
        pairs: PairKind::Dense,
    },
    Workload {
        name: "pca",
        title: "principal components",
        input: Some(Dataset::Pca),
        reads: |_| "a square matrix: means and covariances",
        command: |_| "pca --print means",
        pairs: PairKind::Any,
    },
    Workload {
        name: "tile-search",
        title: "tile search",
        input: None,
        reads: |size| match size {
            Size::Small => "the 8-puzzle, all of it",
            Size::Medium | Size::Large => "the 15-puzzle, to a depth",
        },
        command: |size| match size {
            Size::Small => "tile-search",
            Size::Medium => "tile-search --rows 4 --columns 4 --depth 18",
            Size::Large => "tile-search --rows 4 --columns 4 --depth 22",
        },
        pairs: PairKind::Combining,
    },
    Workload {
        name: "matrix-multiply",
        title: "matrix product",
        input: Some(Dataset::MatrixMultiply),
        reads: |_| "two square matrices",
        command: |_| "matrix-multiply --print summary --left",
        pairs: PairKind::Any,
    },
    Workload {
        name: "palindromes",
        title: "palindromes",
        input: Some(Dataset::SmallFiles),
        reads: |_| "files of 1 KiB",
        command: |_| "palindromes --print total",
        pairs: PairKind::Combining,
    },
    Workload {
        name: "sort",
        title: "sort",
        input: Some(Dataset::Sort),
        reads: |_| "TeraSort records",
        command: |_| "sort --records terasort",
        pairs: PairKind::Any,
    },
];
