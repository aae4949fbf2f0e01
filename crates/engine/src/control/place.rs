//! A place in the input.

use std::ops::Range;

/// A record or a chunk: its source, the offset in the source's content, and its length with its separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub source: usize,
    pub offset: u64,
    pub bytes: u64,
}

impl Place {
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }

    /// Returns whether the two overlap.
    pub fn meets(self, other: Place) -> bool {
        self.source == other.source && self.offset < other.range().end && other.offset < self.range().end
    }
}
