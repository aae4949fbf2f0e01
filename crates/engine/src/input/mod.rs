//! From the paths that a user names to chunks of whole records.
//!
//! In: paths, patterns, pipes, bytes, iterators. Out: [`Source`](source::Source)s of known size, cut into
//! [`Tasks`](tasks::Tasks), and [`Chunk`](chunk::Chunk)s as map functions see them. The rooms `survey`, `worker` and
//! `job` call it. It never starts a process, and never trusts what a file claims about its own size.

pub(crate) mod compression;
pub(crate) mod unread;
mod unmarked;
pub(crate) mod encoding;
pub(crate) mod transcoder;
pub(crate) mod seek_points;
pub(crate) mod zip;
pub(crate) mod decoder;
pub(crate) mod quotes;
pub(crate) mod records;
pub(crate) mod packing;
pub(crate) mod source;
pub(crate) mod chunk;
pub(crate) mod tasks;
pub(crate) mod reader;
pub(crate) mod left_out;
pub(crate) mod look;
pub(crate) mod spool;
mod read_ahead;
pub(crate) mod walk;
pub(crate) mod paths;
pub(crate) mod made;
