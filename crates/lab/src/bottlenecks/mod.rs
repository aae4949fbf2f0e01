//! Thread bottlenecks (Chen 2020; docs/bibliography.md): palindromes in many files, counted by readers and workers in
//! rounds.
//!
//! ```text
//!  rounds       the readers, the queue and the workers
//!  palindromes  `gristmill-lab palindromes`
//! ```
//!
//! `gristmill scale palindromes` repeats the paper's other tables.

mod rounds;
pub mod palindromes;
