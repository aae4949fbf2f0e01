//! Keys, values and pairs as bytes: how they are written, compared, hashed and ordered.
//!
//! In: the types of a program. Out: bytes that any process reads back. Every room uses it. It knows no job, no file and no process,
//! and keeps no state.

pub(crate) mod short;
pub(crate) mod seed;
pub(crate) mod datum;
pub(crate) mod key;
pub(crate) mod entry;
pub(crate) mod digest;
pub(crate) mod order;
pub(crate) mod contract;
