//! A MapReduce small enough to hold in the head, to vary what the engine has no choice for: DMR's channels and buffers,
//! and Phoenix's global array. Input is in memory, keys and values are numbers, and values of a key are added.
//!
//! ```text
//!  words ── map ──> buffer ── page ──> channel ── page ──> table ──> pairs, checked against a sequential loop
//!           └──────── map worker ─────┘└─────── reduce worker ─────┘
//! ```
//!
//! ```text
//!  strategy     the choices of a run, in words
//!  application  five applications: their input and their map functions
//!  oracle       their answers, by a plain loop
//!  table        keys with their values, in buckets
//!  shared       the memory that the workers of a run share
//!  channel      three ways to hand a page over
//!  buffer       four ways to gather pairs into pages
//!  pipeline     DMR: processes or threads that send pages
//!  phoenix      Phoenix: threads, a global array, and a barrier
//!  command      runs strategies in turn, each in a process of its own
//! ```

pub mod strategy;
pub mod application;
mod oracle;
mod table;
mod shared;
mod channel;
mod buffer;
mod pipeline;
mod phoenix;
pub mod command;
