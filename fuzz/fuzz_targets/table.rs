//! Tables of numbers: .npy and CSV, its heading too.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_apps::fuzz::table(bytes));
