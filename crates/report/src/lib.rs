//! Reports for people: messages on a terminal, pages, text, charts, and the timeline of a job.
//!
//! A page is one file of HTML that needs nothing else: no script, no font, no picture. The command and the Python
//! package make such pages.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

// Sorted: a module imports only from those above it (ci/rooms.py).
pub mod text;
pub mod messages;
pub mod tally;
mod document;
pub mod chart;
pub mod plane;
pub mod timeline;

pub use document::{document, table};
