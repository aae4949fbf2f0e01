//! Word count: counts each word.

use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError, Records};

use crate::tokens::{for_tokens, not_space, upper_letters};

/// The definition of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Runs of bytes between ASCII white space, unchanged. UTF-8 is never cut, because its bytes are not white space.
    Space,
    /// A letter and the letters and apostrophes after it, in upper case (the rule of Phoenix).
    Alpha,
}

/// Counts words between ASCII white space.
pub struct SpaceWords;

/// Counts words of letters and apostrophes, in upper case.
pub struct AlphaWords;

/// Returns the program for [`Words::Space`], and its record format.
pub fn space_words() -> (SpaceWords, Records) {
    (SpaceWords, Records::Separated(|byte| byte.is_ascii_whitespace()))
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
