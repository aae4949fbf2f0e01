//! Formats sizes, ages and sets for people.

/// `32 KiB`, `1.5 GiB`
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let shown = format!("{value:.1}");
    format!("{} {}", shown.strip_suffix(".0").unwrap_or(&shown), UNITS[unit])
}

/// `now`, `3 minutes ago`, `2 days ago`
pub fn age(seconds: u64) -> String {
    let ago = |count: u64, unit: &str| format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" });
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => ago(seconds / 60, "minute"),
        3600..86_400 => ago(seconds / 3600, "hour"),
        _ => ago(seconds / 86_400, "day"),
    }
}

/// Formats a set of ascending numbers as the kernel does: `0-3,8`.
pub fn list(numbers: &[usize]) -> String {
    let mut text = String::new();
    for stretch in numbers.chunk_by(|a, b| a + 1 == *b) {
        let [first, last] = [stretch[0], stretch[stretch.len() - 1]];
        let comma = if text.is_empty() { "" } else { "," };
        text += &if first == last { format!("{comma}{first}") } else { format!("{comma}{first}-{last}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ages_and_sets_read_well() {
        assert_eq!([0, 32 << 10, 3 << 29, 1 << 60].map(bytes), ["0 B", "32 KiB", "1.5 GiB", "1024 PiB"]);
        assert_eq!([5, 60, 7300, 200_000].map(age), ["now", "1 minute ago", "2 hours ago", "2 days ago"]);
        assert_eq!(list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!((list(&[]), list(&[5])), (String::new(), "5".to_owned()));
    }
}
