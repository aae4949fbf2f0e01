//! Where records end: lines, words, rows of CSV.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill::fuzz::records(bytes));
