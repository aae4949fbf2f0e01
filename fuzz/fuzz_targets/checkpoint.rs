//! Logs of checkpoints.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill::fuzz::checkpoint(bytes));
