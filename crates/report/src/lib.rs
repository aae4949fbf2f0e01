//! Pages for people: the frame and the colours of a page, text and pictures in it, and the timeline of a job.
//!
//! A page is one file of HTML that needs nothing else: no script, no font, no picture. The command and the Python package
//! make such pages.

// Sorted: a module imports only from those above it (ci/rooms.py).
pub mod text;
mod document;
pub mod plane;
pub mod timeline;

pub use document::{document, table};
