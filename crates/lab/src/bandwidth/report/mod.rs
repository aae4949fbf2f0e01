//! The results of all experiments for people and for programs.
//!
//! ```text
//!  rows     all numbers, as CSV
//!  table    the output on a terminal
//!  charts   pictures
//!  page     a page to read
//! ```

pub mod rows;
mod charts;
pub mod table;
pub mod page;
