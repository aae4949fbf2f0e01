//! Patterns of names, and names.

#![no_main]

#[path = "../../crates/cli/src/options/patterns.rs"]
#[allow(dead_code)]
mod patterns;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (pattern, name) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    let name = name.strip_prefix(b"\0").unwrap_or(name);
    // Without letters that mean something, a pattern matches itself and nothing else.
    let means = patterns::is_match(pattern, name);
    if !pattern.iter().any(|byte| b"*?[".contains(byte)) {
        assert_eq!(means, pattern == name);
    }
});
