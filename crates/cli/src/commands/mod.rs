//! Subcommands, one file each, and the list of those that are applications.

pub mod generate;
pub mod application;
mod word_count;
mod group_by;
mod histogram;
pub mod history;
mod linear_regression;
mod string_match;
mod kmeans;
mod pca;
mod tile_search;
mod matrix_multiply;
pub mod palindromes;
mod sort;
mod terasort;
pub mod machine;
pub mod run;
pub mod completions;

use application::{Application, Workload};

use crate::terminal::failure::Failure;

/// Makes a subcommand from each line, and a list of all workloads.
macro_rules! applications {
    ($($(#[$attribute:meta])* $name:ident($application:ty),)*) => {
        /// The applications.
        #[derive(clap::Subcommand)]
        pub enum Applications {
            $($(#[$attribute])* $name($application),)*
        }

        impl Applications {
            pub fn run(&self) -> Result<(), Failure> {
                match self {
                    $(Applications::$name(application) => application.run(),)*
                }
            }

            /// The workloads of all applications.
            pub fn workloads() -> impl Iterator<Item = &'static Workload> {
                let all = [$(<$application>::WORKLOADS),*];
                all.into_iter().flatten()
            }
        }
    };
}

// Listed in the order of the help. A new application needs a line here, its module above, and its program in
// gristmill-apps.
applications! {
    WordCount(word_count::WordCount),
    GroupBy(group_by::GroupBy),
    Histogram(histogram::Histogram),
    LinearRegression(linear_regression::LinearRegression),
    StringMatch(string_match::StringMatch),
    #[command(name = "kmeans")]
    KMeans(kmeans::KMeans),
    Pca(pca::Pca),
    TileSearch(tile_search::TileSearch),
    MatrixMultiply(matrix_multiply::MatrixMultiply),
    Palindromes(palindromes::Palindromes),
    Sort(sort::Sort),
    Terasort(terasort::Terasort),
}
