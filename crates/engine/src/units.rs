//! Parsing of sizes and durations in options.

use std::time::Duration;

/// Unit suffixes and their values in bytes. A lone letter is a power of 1024, as in `sort`, `dd` and `du`.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// Parses `65536`, `64KiB`, `64K`, `64kB`, `1.5GiB`; fractions of a byte are dropped.
///
/// ```
/// assert_eq!(gristmill::units::bytes("1.5GiB"), Ok(3 << 29));
/// assert_eq!(gristmill::units::bytes("64 kB"), Ok(64_000));
/// assert!(gristmill::units::bytes("64 apples").is_err());
/// ```
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn bytes(text: &str) -> Result<usize, String> {
    let no_size = || "a size is a number and a unit, like 64KiB or 1.5GiB".to_owned();
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_number || whole.is_empty() || fraction.is_empty() {
        return Err(no_size());
    }
    let unit = unit.trim_start().to_ascii_lowercase();
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{unit} is no unit of size; use B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB"));
    };
    let too_many = || "this is more than the machine can count".to_owned();
    let whole: u64 = whole.parse().map_err(|_| too_many())?;
    // Digits beyond the eighteenth are worth less than a byte.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts =
        fraction.parse::<u128>().map_err(|_| no_size())? * u128::from(*factor) / 10_u128.pow(fraction.len() as u32);
    let bytes = whole.checked_mul(*factor).and_then(|bytes| bytes.checked_add(parts as u64));
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(too_many)
}

/// Parses `30s`, `500ms`, `2min`.
///
/// ```
/// # use std::time::Duration;
/// assert_eq!(gristmill::units::duration("1min 30s"), Ok(Duration::from_secs(90)));
/// ```
///
/// # Errors
/// A sentence that says what a duration looks like; zero is refused.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("a time limit is longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write 30s, 500ms or 2min")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_their_units() {
        for (text, expected) in [
            ("4096", 4096),
            ("64KiB", 65536),
            ("64k", 65536),
            ("64 kB", 64000),
            ("1GiB", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("0.5k", 512),
            ("2.25 MB", 2_250_000),
            ("1.0001", 1),
            ("2T", 2 << 40),
            ("15.999999999999999999GiB", (16 << 30) - 1),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "KiB", "64QB", "-1", "99999999TiB", ".5GiB", "1.GiB", "1.5.2GiB", "1,5GiB", "1e3"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_are_not_zero() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert!(duration("30").is_err());
        assert!(duration("0s").is_err());
    }
}
