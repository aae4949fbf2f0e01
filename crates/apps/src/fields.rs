//! Fields of JSON lines: each line is an object, and selected fields are read by name.
//!
//! A string is its content with escapes resolved; numbers, `true` and `false` are taken as written. Arrays and
//! objects cannot be grouped or summed. `null` is an empty field where that is allowed, and an error elsewhere. If a
//! name occurs twice, the last field counts. Empty lines are skipped.

use std::borrow::Cow;
use std::fmt;

use gristmill::{Chunk, ProgramError};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::columns::Fault;
use crate::file_format::without_mark;

/// Selected fields of JSON lines, by name.
pub(crate) struct Fields<const N: usize> {
    pub names: [String; N],
    /// Which of the fields may be null.
    pub nulls: [bool; N],
    /// Which of the fields hold numbers.
    pub numbers: [bool; N],
}

impl<const N: usize> Fields<N> {
    /// Calls `take` with the fields of each line of a chunk, up to the first that is malformed.
    pub fn for_each_row(
        &self,
        chunk: &Chunk<'_>,
        mut take: impl FnMut([&[u8]; N]) -> Result<(), Fault>,
    ) -> Result<(), ProgramError> {
        // A byte order mark is not part of the first line's JSON.
        let begins = chunk.offset() == 0;
        let text = |at: usize, line| if begins && at == 0 { without_mark(line) } else { line };
        let mut lines =
            chunk.records().map(|(at, line)| (at, text(at, line))).filter(|(_, line)| !line.trim_ascii().is_empty());
        lines.try_for_each(|(at, line)| self.row(line, &mut take).map_err(|why| chunk.reject(at, why)))
    }

    /// Calls `take` with the fields of a line, or returns what is wrong with them.
    pub fn row(&self, line: &[u8], take: &mut impl FnMut([&[u8]; N]) -> Result<(), Fault>) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let found = json.deserialize_map(self).and_then(|found| json.end().map(|()| found)).map_err(|error| {
            // serde_json sees a single line, so its line number is always 1 and is removed.
            let (text, column) = (error.to_string(), error.column());
            let what = text.strip_suffix(&format!(" at line 1 column {column}")).unwrap_or(&text);
            format!("this is no JSON object: {what} (byte {column} of the line)")
        })?;
        let mut texts = [const { Cow::Borrowed("") }; N];
        for (at, (text, field)) in texts.iter_mut().zip(found).enumerate() {
            let (name, null, is_number) = (&self.names[at], self.nulls[at], self.numbers[at]);
            let field = field.ok_or_else(|| format!("there is no field {name:?}"))?;
            if null && field.get() == "null" {
                continue;
            }
            let wanted = if is_number { "a number" } else { "a text, a number, true or false" };
            *text = text_of(field, wanted).map_err(|why| format!("field {name:?} {why}"))?;
        }
        take(texts.each_ref().map(|text| text.as_bytes()))
            .map_err(|(field, why)| format!("field {:?}: {why}", self.names[field]))
    }
}

/// Returns the content of a string, number or boolean; `wanted` says what it should be.
fn text_of<'v>(value: &'v RawValue, wanted: &str) -> Result<Cow<'v, str>, String> {
    let json = value.get();
    match json.as_bytes() {
        [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => Ok(Cow::Borrowed(&json[1..json.len() - 1])),
        [b'"', ..] => serde_json::from_str(json).map(Cow::Owned).map_err(|_| "has half of a surrogate pair".to_owned()),
        [b'n', ..] => Err(format!("is null, and should be {wanted}")),
        [b'[', ..] => Err(format!("is an array, and should be {wanted}")),
        [b'{', ..] => Err(format!("is an object, and should be {wanted}")),
        _ => Ok(Cow::Borrowed(json)),
    }
}

/// Finds the fields in an object.
impl<'de, const N: usize> Visitor<'de> for &Fields<N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(wanted) = object.next_key_seed(Name(&self.names))? {
            match wanted {
                None => drop(object.next_value::<IgnoredAny>()?),
                Some(first) => {
                    let value = object.next_value()?;
                    let same = self.names.iter().zip(&mut found).filter(|(name, _)| **name == self.names[first]);
                    same.for_each(|(_, place)| *place = Some(value));
                }
            }
        }
        Ok(found)
    }
}

/// Finds a name among the wanted ones.
struct Name<'f>(&'f [String]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|wanted| wanted == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Result<[String; 2], String> {
        let fields = Fields { names: ["k", "v"].map(str::to_owned), nulls: [false, true], numbers: [false, true] };
        let mut taken = Err("nothing was taken".to_owned());
        fields.row(line.as_bytes(), &mut |row| {
            taken = Ok(row.map(|field| String::from_utf8(field.to_vec()).expect("JSON is UTF-8")));
            Ok(())
        })?;
        taken
    }

    #[test]
    fn fields_are_found_in_any_place_and_decoded() {
        let pair = |key: &str, value: &str| Ok([key.to_owned(), value.to_owned()]);
        assert_eq!(row(r#"{"k":"a","v":1}"#), pair("a", "1"));
        assert_eq!(row(r#" { "x" : [{"k":1},"}"] , "v" : -1.50e3, "k" : "\u00e9\"\\" } "#), pair("é\"\\", "-1.50e3"));
        assert_eq!(row(r#"{"\u006b":true,"v":"2","v":"3"}"#), pair("true", "3"));
        assert_eq!(row(r#"{"k":"a","v":null}"#), pair("a", ""));
    }

    /// The error for an array in a field to sum advised a text, true or false, which are refused there too.
    #[test]
    fn errors_in_a_line_are_described() {
        for (line, expected) in [
            (r#"{"k":"a"}"#, r#"there is no field "v""#),
            (r#"{"k":null,"v":1}"#, r#"field "k" is null, and should be a text, a number, true or false"#),
            (r#"{"k":"a","v":[1]}"#, r#"field "v" is an array, and should be a number"#),
            (r#"{"k":{},"v":1}"#, r#"field "k" is an object, and should be a text, a number, true or false"#),
            (r#"{"k":"\ud800","v":1}"#, r#"field "k" has half of a surrogate pair"#),
            (r#"{"k":"a","v":1"#, "this is no JSON object: EOF while parsing an object (byte 14 of the line)"),
            (r#"{"k":"a","v":1}}"#, "this is no JSON object: trailing characters (byte 16 of the line)"),
            ("[1]", "this is no JSON object: invalid type: sequence, expected an object (byte 0 of the line)"),
        ] {
            assert_eq!(row(line), Err(expected.to_owned()), "{line}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use serde_json::Value;

    use super::*;
    use crate::nearly::{fuzz, mutate};

    /// Reads the fields of a line by way of `serde_json::Value`.
    fn by_values(line: &[u8]) -> Result<Option<[String; 2]>, serde_json::Error> {
        let object: Value = serde_json::from_slice(line)?;
        let text = |name: &str| match object.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Number(_) => Some("a number".to_owned()),
            _ => None,
        };
        Ok(["k", "v"].map(text).into_iter().collect::<Option<Vec<_>>>().map(|texts| texts.try_into().expect("two")))
    }

    #[test]
    fn fields_agree_with_serde_json_values() {
        let line = r#"{"k":"w\u00e9\n","x":[{"v":null},true],"v":-1.5e3}"#;
        let fields = Fields { names: ["k", "v"].map(str::to_owned), nulls: [false; 2], numbers: [false; 2] };
        fuzz(|random| {
            let mut line = line.as_bytes().to_vec();
            mutate(random, &mut line);
            let mut taken = None;
            let found = fields.row(&line, &mut |row| {
                taken = Some(row.map(|field| String::from_utf8(field.to_vec()).expect("JSON is UTF-8")));
                Ok(())
            });
            match by_values(&line) {
                Ok(expected) => {
                    assert_eq!(taken.is_some(), expected.is_some(), "{found:?}");
                    let pairs = taken.iter().flatten().zip(expected.iter().flatten());
                    assert!({ pairs }.all(|(found, expected)| found == expected || expected == "a number"));
                }
                // The parser skips fields that are not wanted, even numbers too large for a float and invalid
                // strings.
                Err(error) => {
                    let error = error.to_string();
                    let of_values = ["number out of range", "invalid unicode code point", "surrogate"];
                    assert!(found.is_err() || of_values.iter().any(|what| error.contains(what)), "{error}");
                }
            }
        });
    }
}
