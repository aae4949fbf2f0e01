//! Compressed files: headers of frames, tables of frames, and content.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill::fuzz::compressed(bytes));
