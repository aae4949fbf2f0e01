//! Word count: counts each word.

use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError, Records};

use crate::tokens::{for_tokens, is_space, not_separator, not_space, upper_letters};

/// The definition of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Runs of bytes between ASCII white space (space, tab, line feed, vertical tab, form feed, carriage return),
    /// unchanged. UTF-8 is never cut, because its bytes are not white space.
    Space,
    /// A letter and the letters and apostrophes after it, in upper case (the rule of Phoenix).
    Alpha,
}

/// Counts words between ASCII white space.
pub struct SpaceWords;

/// Counts words of letters and apostrophes, in upper case.
pub struct AlphaWords;

/// Counts the words of UTF-8 text as `str.split()` of Python finds them: between the white space of Unicode and the
/// separators 0x1c to 0x1f. Records are lines.
pub struct UnicodeWords;

/// Returns the program for [`Words::Space`], and its record format.
pub fn space_words() -> (SpaceWords, Records) {
    (SpaceWords, Records::Separated(is_space))
}

/// Returns the program for [`Words::Alpha`], and its record format.
pub fn alpha_words() -> (AlphaWords, Records) {
    (AlphaWords, Records::Separated(|byte| !byte.is_ascii_alphabetic() && byte != b'\''))
}

impl MapReduce for SpaceWords {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let text = chunk.bytes();
        for_tokens(text, not_space, |words| out.emit_each(text, words, 1));
        Ok(())
    }
}

impl MapReduce for AlphaWords {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.bytes_mut().make_ascii_uppercase();
        let text = chunk.bytes();
        for_tokens(text, upper_letters, |words| out.emit_each(text, words, 1));
        Ok(())
    }
}
impl MapReduce for UnicodeWords {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let bytes = chunk.bytes();
        let text = str::from_utf8(bytes).map_err(|error| chunk.reject(error.valid_up_to(), "this is not UTF-8"))?;
        if text.is_ascii() {
            for_tokens(bytes, not_separator, |words| out.emit_each(bytes, words, 1));
            return Ok(());
        }
        let mut places = Vec::new();
        for_tokens(bytes, not_separator, |words| {
            places.clear();
            for [start, end] in words {
                let word = &text[*start as usize..*end as usize];
                if word.is_ascii() {
                    places.push([*start, *end]);
                } else {
                    words_of(word, *start, &mut places);
                }
            }
            out.emit_each(bytes, &places, 1);
        });
        Ok(())
    }
}

/// Appends the bounds of what is left of `word`, which begins at `start`, when it is cut at white space that is no
/// ASCII.
fn words_of(word: &str, start: u32, places: &mut Vec<[u32; 2]>) {
    let parts = word.split(char::is_whitespace).filter(|part| !part.is_empty());
    places.extend(parts.map(|part| {
        let at = start + (part.as_ptr().addr() - word.as_ptr().addr()) as u32;
        [at, at + part.len() as u32]
    }));
}

#[cfg(test)]
mod tests {
    use gristmill::{Input, Isolation, Job, Records};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn words_are_cut_where_python_cuts_them(text in "[ab\u{e9}\n\t\u{b}\u{1c}\u{1f}\u{85}\u{a0}\u{2003}\u{2028}\u{200b}\u{3000} ]{0,200}") {
            let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
            let mut expected: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
            expected.sort_unstable();
            let input = Input::bytes("text", text.as_bytes()).expect("in memory").records(Records::Lines);
            let job = Job::new(&UnicodeWords, input).isolation(Isolation::Thread);
            let (counts, _) = job.run().expect("a result");
            let found: Vec<&[u8]> = counts.iter().flat_map(|(word, count)| std::iter::repeat_n(word, count as usize)).collect();
            prop_assert_eq!(found, expected.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_byte_that_is_no_text_is_named() {
        let input = Input::bytes("text", b"good\nba\xffd\n").expect("in memory").records(Records::Lines);
        let job = Job::new(&UnicodeWords, input).isolation(Isolation::Thread);
        let Err(gristmill::Error::Rejected { offset, line, why, .. }) = job.run() else { panic!("it is no text") };
        assert_eq!((offset, line, &why[..]), (7, Some(2), "this is not UTF-8"));
    }
}
