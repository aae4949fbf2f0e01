//! Sizes and durations as people write them.

use std::time::Duration;

/// Letters after a number, and how many bytes they mean. A lone letter counts in powers of two, as in
/// `sort`, `dd` and `du`.
const UNITS: [(&str, u64); 12] = [
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
    ("tib", 1 << 40),
];

/// Parses `65536`, `64KiB`, `64K`, `64kB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a size is a number and a unit, like 64KiB".to_owned())?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{unit} is no unit of size; use B, KiB, MiB, GiB, or kB, MB, GB"));
    };
    let bytes = number.checked_mul(*factor).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| "this is more than the machine can count".to_owned())
}

/// Parses `30s`, `500ms`, `2min`.
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
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [("4096", 4096), ("64KiB", 65536), ("64k", 65536), ("64 kB", 64000), ("1GiB", 1 << 30)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "KiB", "64QB", "-1", "99999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_a_length() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert!(duration("30").is_err());
        assert!(duration("0s").is_err());
    }
}
