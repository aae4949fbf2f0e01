//! The words of a command, with places for the number of workers and for parameters.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The placeholder for the number of workers.
pub const PLACE: &str = "{workers}";

/// Returns the word with numbers in its places: `{workers}` is the number, `{workers*N}` is N times the number.
pub fn filled(word: &OsStr, workers: u64) -> OsString {
    replaced(word, |rest| {
        let (length, factor) = place(rest)?;
        Some((length, workers.checked_mul(factor)?.to_string().into_bytes()))
    })
}

/// Returns the word with `value` in the places of `{name}`.
pub fn varied(word: &OsStr, name: &str, value: &str) -> OsString {
    let place = format!("{{{name}}}");
    replaced(word, |rest| rest.starts_with(place.as_bytes()).then(|| (place.len(), value.as_bytes().to_vec())))
}

/// Returns how many places for the number of workers a word has.
pub fn places(word: &OsStr) -> usize {
    let bytes = word.as_bytes();
    (0..bytes.len()).filter(|at| place(&bytes[*at..]).is_some()).count()
}

/// Returns the length of the place at the beginning of these bytes, and the factor in it.
fn place(bytes: &[u8]) -> Option<(usize, u64)> {
    let rest = bytes.strip_prefix(b"{workers")?;
    let end = rest.iter().position(|byte| *byte == b'}')?;
    let factor = match &rest[..end] {
        [] => 1,
        factor => str::from_utf8(factor.strip_prefix(b"*")?).ok()?.parse().ok()?,
    };
    Some((bytes.len() - rest.len() + end + 1, factor))
}

/// Replaces what `find` finds at the beginning of some rest of the word: its length, and what replaces it.
fn replaced(word: &OsStr, find: impl Fn(&[u8]) -> Option<(usize, Vec<u8>)>) -> OsString {
    let mut rest = word.as_bytes();
    let mut done = Vec::with_capacity(rest.len());
    while let [first, others @ ..] = rest {
        match find(rest) {
            Some((length, value)) => {
                done.extend_from_slice(&value);
                rest = &rest[length..];
            }
            None => {
                done.push(*first);
                rest = others;
            }
        }
    }
    OsString::from_vec(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_replaced_by_the_number() {
        let filled_in = |word: &str| filled(OsStr::new(word), 12).into_string().expect("text");
        assert_eq!(filled_in("-j{workers}"), "-j12");
        assert_eq!(filled_in("{workers}/{workers}"), "12/12");
        assert_eq!(filled_in("{workers*1000}k"), "12000k");
        for unchanged in [
            "{worker}{workers",
            "{workers*}",
            "{workers*-1}",
            "{workers*99999999999999999999}",
            "{workers*9999999999999999999}",
        ] {
            assert_eq!(filled_in(unchanged), unchanged);
        }
        let odd = OsString::from_vec(b"\xff{workers}".to_vec());
        assert_eq!(filled(&odd, 3).into_vec(), b"\xff3");
        let count = |word: &str| places(OsStr::new(word));
        assert_eq!(["make", "-j{workers}", "{workers}{workers*2}", "{workers*x}"].map(count), [0, 1, 2, 0]);
    }

    #[test]
    fn a_parameter_is_replaced_by_its_value() {
        let varied_in = |word: &str| varied(OsStr::new(word), "size", "4k").into_string().expect("text");
        assert_eq!(varied_in("a{size}b{size}{sizes}{workers}"), "a4kb4k{sizes}{workers}");
        assert_eq!(varied(OsStr::new("{n}"), "n", "{n}"), "{n}");
    }
}
