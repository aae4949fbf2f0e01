//! The report for a terminal, a page, and a program.
//!
//! ```text
//!  notes  facts about the runs beside their times: failures, load, processors in use
//!  keep   the times in the history, for the plans of later runs
//!  text   the report on the terminal
//!  chart  the curve as SVG
//!  page   the report as a page
//!  json   the report for programs
//! ```

pub mod notes;
pub mod keep;
pub mod text;
pub mod chart;
pub mod page;
pub mod json;
