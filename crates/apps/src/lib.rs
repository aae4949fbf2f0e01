//! The applications of the papers, each one file.

mod tokens;
mod word_count;

pub use word_count::{Words, alpha_words, space_words};
