//! Values of options: sizes and durations.

#![no_main]

use gristmill::units;

libfuzzer_sys::fuzz_target!(|text: &str| {
    drop(units::bytes(text));
    if let Ok(duration) = units::duration(text) {
        assert!(!duration.is_zero());
    }
});
