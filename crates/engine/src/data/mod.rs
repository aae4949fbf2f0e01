//! Keys, values and pairs as bytes: how they are written, compared, hashed and ordered.
//!
//! In: the types of a program. Out: bytes that any process can read. Every room uses it. It keeps no state and knows
//! nothing of jobs, files or processes.

pub(crate) mod short;
pub(crate) mod seed;
pub(crate) mod datum;
pub(crate) mod key;
pub(crate) mod simple;
pub(crate) mod compound;
pub(crate) mod either;
pub(crate) mod entry;
pub(crate) mod digest;
pub(crate) mod order;
pub(crate) mod contract;
