//! Subcommands, one file each, and the list of those that are applications.

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
pub mod machine;
pub mod run;
pub mod completions;

use crate::terminal::failure::Failure;

/// Makes a subcommand from each line.
macro_rules! applications {
    ($($(#[$attribute:meta])* $name:ident($application:ty),)*) => {
        /// The applications.
        #[derive(clap::Subcommand)]
        #[allow(missing_docs)] // The help of a variant is that of its application.
        pub enum Applications {
            $($(#[$attribute])* $name($application),)*
        }

        impl Applications {
            /// Runs the application.
            pub fn run(&self) -> Result<(), Failure> {
                match self {
                    $(Applications::$name(application) => application.run(),)*
                }
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
}
