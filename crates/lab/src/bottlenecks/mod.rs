//! Thread bottlenecks (Chen 2020; docs/bibliography.md): palindromes in many files, counted by readers and workers in
//! rounds, and by the engine.
//!
//! ```text
//!  rounds       the readers, the queue and the workers
//!  palindromes  `gristmill-lab palindromes`
//!  files        the files of the paper, as many as there is room for
//!  reading      files read by threads that do nothing else, and where their time goes
//!  computing    palindromes counted by the engine
//!  scaling      times over numbers of threads, beside those of the paper
//!  verdicts     when this machine agrees with a table
//!  paper        the page: `gristmill-lab bottlenecks`
//! ```

mod rounds;
pub mod palindromes;
mod files;
mod reading;
mod computing;
mod scaling;
mod verdicts;
pub mod paper;
