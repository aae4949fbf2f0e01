//! Numbers in text fields: whole ones exactly, others as the nearest `f64`.

use std::fmt::Display;

use crate::error::Error;

/// A number as it was written, or the value of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Digits and a sign.
    Whole(i128),
    /// Any other number; finite.
    Fraction(f64),
}

/// A sum that is too large for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    /// A sum of whole numbers.
    #[error("the sum of its whole numbers is beyond 128 bits, about 1.7e38")]
    Whole,
    /// A sum of fractions.
    #[error("the sum of its numbers, or of some of them, is beyond the largest floating-point number, about 1.8e308")]
    Fraction,
    /// A number computed from others.
    #[error(
        "it, or a number on the way to it, is beyond the largest floating-point number, about 1.8e308; scale the input"
    )]
    Result,
    /// A sum of whole numbers that is kept in 64 bits.
    #[error("the sum is beyond 64 bits, about 1.8e19")]
    Word,
}

impl Number {
    /// Parses a field, ignoring spaces around the number, or returns why it is not one.
    #[inline]
    pub fn of(field: &[u8]) -> Result<Number, String> {
        if let Some(number) = of_few_digits(field) {
            return Ok(number);
        }
        let field = field.trim_ascii();
        Number::of_text(field).ok_or_else(|| {
            if is_whole(field) {
                format!("{} is beyond 128 bits, about 1.7e38", quoted(field))
            } else {
                format!("{} is not a finite number", quoted(field))
            }
        })
    }

    #[inline(never)]
    fn of_text(field: &[u8]) -> Option<Number> {
        let text = str::from_utf8(field).ok()?;
        if is_whole(field) {
            return text.parse().ok().map(Number::Whole);
        }
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Fraction)
    }

    /// The nearest `f64`.
    pub fn nearest(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Fraction(number) => number,
        }
    }
}

/// Returns the finite number nearest to a field's, ignoring spaces around it, or why there is none.
pub(crate) fn finite(field: &[u8]) -> Result<f64, String> {
    match Number::of(field) {
        Ok(number) => Ok(number.nearest()),
        // A whole number with too many digits is rounded.
        Err(why) => str::from_utf8(field.trim_ascii())
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|value: &f64| value.is_finite())
            .ok_or(why),
    }
}

/// Parses the most common numbers: at most 15 digits, with or without a point.
#[inline(always)]
fn of_few_digits(field: &[u8]) -> Option<Number> {
    const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut number, mut point) = (0u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(digits.len() - 1 - at),
            _ => return None,
        }
    }
    Some(match point {
        _ if digits.len() == 16 && point.is_none() => return None,
        None => Number::Whole(if negative { -i128::from(number) } else { number.into() }),
        Some(_) if digits.len() == 1 => return None,
        Some(places) => {
            // Both are exact, so their quotient is the number nearest to the decimal one.
            let size = number as f64 / TENS[places];
            Number::Fraction(if negative { -size } else { size })
        }
    })
}

/// Returns true for digits with an optional sign.
fn is_whole(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").or(field.strip_prefix(b"+")).unwrap_or(field);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Returns the error for a number of the result, called `what`, that is not finite.
pub(crate) fn overflow(what: impl Display) -> Error {
    Error::Question(format!("{what}: {}", Overflow::Result))
}

/// Formats a number for a message: with an exponent if it would have many zeros.
pub(crate) fn short(number: f64) -> String {
    if number == 0.0 || (1e-5..1e17).contains(&number.abs()) { number.to_string() } else { format!("{number:e}") }
}

/// Formats a field for a message.
fn quoted(field: &[u8]) -> String {
    let line = field.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or(field);
    let shown = String::from_utf8_lossy(&line[..line.len().min(40)]);
    let more = match (line.len() > 40, line.len() < field.len()) {
        (_, true) => "... (it has more than one line)",
        (true, false) => "...",
        (false, false) => "",
    };
    format!("{shown:?}{more}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fast_path_for_few_digits_agrees_with_other_parsers(field in "-?[0-9]{0,9}[.]?[0-9]{0,9}|[-0-9.]{0,5}") {
            let expected = Number::of_text(field.as_bytes());
            prop_assert_eq!(of_few_digits(field.as_bytes()).or(expected), expected);
            prop_assert_eq!(Number::of(field.as_bytes()).ok(), expected);
        }
    }

    #[test]
    fn fields_are_whole_numbers_or_fractions_or_errors() {
        let whole = |number| Ok(Number::Whole(number));
        let fraction = |number| Ok(Number::Fraction(number));
        for (field, expected) in [
            (" 12 ", whole(12)),
            ("+3", whole(3)),
            ("-0", whole(0)),
            ("9007199254740993", whole(9_007_199_254_740_993)),
            ("-170141183460469231731687303715884105728", whole(i128::MIN)),
            ("1.0", fraction(1.0)),
            ("1e3", fraction(1000.0)),
            (".5", fraction(0.5)),
            ("170141183460469231731687303715884105728", Err("beyond 128 bits")),
            // A literal \n stood in the message.
            ("12\n34", Err("\"12\"... (it has more than one line) is not a finite number")),
            ("1e309", Err("is not a finite number")),
            ("inf", Err("is not a finite number")),
            ("NaN", Err("is not a finite number")),
            ("", Err("\"\" is not a finite number")),
            ("+", Err("is not a finite number")),
        ] {
            match (Number::of(field.as_bytes()), expected) {
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{field}"),
            }
        }
    }
}
