//! The words that workers and coordinator share: claims, commits, rounds, progress, failures.
//!
//! In and out: atomics of the region, each with one kind of writer ([`words`]). Workers and the coordinator call it. It
//! holds no pairs and makes no decisions. Waiting for a word always goes through the doorbell of the waiter.

pub(crate) mod counters;
pub(crate) mod track;
pub(crate) mod meter;
pub(crate) mod job_is_over;
pub(crate) mod progress;
pub(crate) mod heartbeat;
pub(crate) mod place;
pub(crate) mod telling;
pub(crate) mod words;
pub(crate) mod ledger;
pub(crate) mod claims;
pub(crate) mod digests;
pub(crate) mod shares;
pub(crate) mod node_reads;
pub(crate) mod accumulated;
pub(crate) mod bad_records;
pub(crate) mod failures;
pub(crate) mod result_parts;
pub(crate) mod steps;
pub(crate) mod stray_writes;
