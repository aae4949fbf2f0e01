//! Blocks of runs, as they lie in spill files and checkpoints.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill::fuzz::block(bytes));
