//! Lines of JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_apps::fuzz::json(bytes));
