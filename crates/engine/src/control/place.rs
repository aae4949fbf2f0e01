//! A place in the input.

use std::ops::Range;

/// A record or a chunk: in which source, from which byte of its content on, and its bytes, what ends it included.
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

    /// True when the two have a byte in common.
    pub fn meets(self, other: Place) -> bool {
        self.source == other.source && self.offset < other.range().end && other.offset < self.range().end
    }
}
