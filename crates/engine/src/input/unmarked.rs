//! Recognition of text in UTF-16 or UTF-32 without a mark.
//!
//! Bytes with NULs among them are counted as they are if they may be strings that end with NUL. They are refused only
//! if they are text as UTF-16 and not as bytes: every unit is part of a character, none is a control character, and
//! most bytes of white space are units of white space. UTF-16 whose first bytes contain no white space of ASCII cannot
//! be told from other bytes.

/// An encoding that bytes seem to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmarked {
    /// The label of UTF-16 with the order of its bytes.
    Utf16(&'static str),
    /// The name of UTF-32 with the order of its bytes, as iconv has it.
    Utf32(&'static str),
}

/// Returns the encoding that the beginning of a file seems to have, if it is UTF-16 or UTF-32.
pub(crate) fn unmarked(start: &[u8]) -> Option<Unmarked> {
    if !start.contains(&0) {
        return None;
    }
    let (units, _) = start.as_chunks::<4>();
    if is_utf_32(units, u32::from_le_bytes) {
        return Some(Unmarked::Utf32("UTF-32LE"));
    } else if is_utf_32(units, u32::from_be_bytes) {
        return Some(Unmarked::Utf32("UTF-32BE"));
    }
    let (units, rest) = start.as_chunks::<2>();
    let is_other_text = !rest.is_empty() || is_strings(start);
    let is_text = |unit: fn([u8; 2]) -> u16| is_western(units, unit) || !is_other_text && is_utf_16(units, unit);
    match () {
        () if is_text(u16::from_le_bytes) => Some(Unmarked::Utf16("utf-16le")),
        () if is_text(u16::from_be_bytes) => Some(Unmarked::Utf16("utf-16be")),
        () => None,
    }
}

/// Returns whether units are text of Western Europe, most of whose characters have a NUL as their first byte, and none
/// as their second. A few may be quotation marks or dashes.
fn is_western(units: &[[u8; 2]], unit: fn([u8; 2]) -> u16) -> bool {
    let with_first = units.iter().filter(|bytes| unit(**bytes) < 0x100).count();
    let with_second = units.iter().filter(|bytes| unit(**bytes) & 0xff == 0).count();
    units.len() >= 2 && with_second == 0 && with_first >= units.len() - units.len() / 8
}

/// Returns whether units are text in UTF-16 with white space. The last of them may be half of a character. Words of
/// bytes with a NUL among them have white space too, most of it beside another byte.
fn is_utf_16(units: &[[u8; 2]], unit: fn([u8; 2]) -> u16) -> bool {
    let (mut spaces, mut strays) = (0, 0);
    let mut units = units.iter().map(|bytes| unit(*bytes)).peekable();
    while let Some(first) = units.next() {
        let character = match (first, units.peek()) {
            (0xd800..0xdc00, None) => continue,
            (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => {
                let character = 0x1_0000 + (u32::from(first & 0x3ff) << 10) + u32::from(second & 0x3ff);
                units.next();
                character
            }
            _ => u32::from(first),
        };
        if !is_of_text(character) {
            return false;
        }
        match character {
            character if is_space(character) => spaces += 1,
            // Dashes, quotation marks and an ellipsis.
            0x2010..0x2020 | 0x2026 => {}
            _ => strays += usize::from(is_space_beside_a_letter(character)),
        }
    }
    spaces > 0 && 2 * strays <= spaces
}

/// Returns whether the bytes of a character are a space or line end of ASCII and a character that is no control
/// character.
fn is_space_beside_a_letter(character: u32) -> bool {
    let [high, low] = [character >> 8 & 0xff, character & 0xff];
    [(high, low), (low, high)].iter().any(|(one, other)| matches!(one, 0x20 | 0x0a) && *other >= 0x20)
}

/// Returns whether units are text in UTF-32 with white space.
fn is_utf_32(units: &[[u8; 4]], unit: fn([u8; 4]) -> u32) -> bool {
    let mut units = units.iter().map(|bytes| unit(*bytes));
    units.len() >= 2 && units.clone().all(is_of_text) && units.any(is_space)
}

/// Returns whether bytes are text in UTF-8, in which NULs end strings. The last character may be cut off.
fn is_strings(bytes: &[u8]) -> bool {
    let has_control = bytes.iter().any(|byte| *byte != 0 && !is_of_text(u32::from(*byte).min(0x7e)));
    let is_utf_8 = str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    // The first bytes of the scripts of India are tabs and line ends.
    let white = bytes.iter().filter(|byte| (0x09..=0x0d).contains(*byte)).count();
    !has_control && is_utf_8 && 3 * white < bytes.len()
}

/// Returns whether text may contain a character: it has no control characters but white space and escape, and none
/// without a meaning of its own.
fn is_of_text(character: u32) -> bool {
    match character {
        0x09..=0x0d | 0x1b | 0x85 | 0xfeff => true,
        0..0x20 | 0x7f..0xa0 | 0xe000..0xf900 | 0xfdd0..0xfdf0 => false,
        _ => character & 0xfffe != 0xfffe && char::from_u32(character).is_some(),
    }
}

fn is_space(character: u32) -> bool {
    matches!(character, 0x09 | 0x0a | 0x0d | 0x20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn utf_16_of_every_script_is_told_from_other_bytes_by_its_white_space() {
        // Russian and Japanese in UTF-16 without a mark were counted as bytes, because only Latin letters showed it.
        for text in [
            "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}\n",
            "\u{43a}\n",
            "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}\r\n",
            // One and an ideographic space have NULs as their second bytes.
            "\u{3000}\u{4e00}\u{3064}\n\u{4e00}\u{4eba}\n",
            "old pond\n\u{53e4}\u{6c60}\u{3084}\u{86d9}\u{98db}\u{3073}\u{8fbc}\u{3080}\u{6c34}\u{306e}\u{97f3}\n",
            "\u{3b1}\u{3b2}\t1\n",
            "\u{1f438} frog\n",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} \u{920}\n",
            "\u{e20}\u{e0a}\n",
            "\u{6709}\u{201c}\u{540d}\u{201d}\n",
            "\u{ac1c}\u{ad6c}\u{b9ac}\n",
            "old pond\n",
        ] {
            let little = wide(text);
            let big: Vec<u8> = little.as_chunks().0.iter().flat_map(|[low, high]: &[u8; 2]| [*high, *low]).collect();
            assert_eq!(unmarked(&little), Some(Unmarked::Utf16("utf-16le")), "{text}");
            assert_eq!(unmarked(&big), Some(Unmarked::Utf16("utf-16be")), "{text}");
            let wider: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
            assert_eq!(unmarked(&wider), Some(Unmarked::Utf32("UTF-32LE")), "{text}");
            let wider: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect();
            assert_eq!(unmarked(&wider), Some(Unmarked::Utf32("UTF-32BE")), "{text}");
            assert_eq!(unmarked(text.as_bytes()), None, "{text}");
        }
        // Half of a character at the end of what was read.
        assert_eq!(unmarked(&wide("\u{43a}\n\u{1f438}")[..6]), Some(Unmarked::Utf16("utf-16le")));
    }

    #[test]
    fn strings_that_end_with_nul_and_numbers_are_taken_as_they_are() {
        for bytes in [
            &b""[..],
            b"\0",
            b"foo\0bar\0",
            b"old pond\n\0frog \0",
            b"caf\xc3\xa9 \0",
            b"caf\xe9s\0a b\0",
            b"a\x08b \0 ab old frog\nab \0 cd\n\xff\xfe \0",
            b"old pond\x08 \0\n",
            b"a\0\0\0b\0\0\0",
            b"\x01\0\x20\0\x0a\0\x07\x09",
            b"\x41\0\0\0\x02\0\0\0",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
        ] {
            assert_eq!(unmarked(bytes), None, "{bytes:?}");
        }
    }
}
