//! One file for each subcommand.

pub mod word_count;
pub mod group_by;
pub mod histogram;
pub mod linear_regression;
pub mod string_match;
pub mod kmeans;
pub mod pca;
pub mod tile_search;
pub mod matrix_multiply;
pub mod palindromes;
pub mod sort;
pub mod terasort;
pub mod generate;
pub mod machine;
pub mod completions;
