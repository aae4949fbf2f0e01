//! The header of a page, in front of its pairs.
//!
//! ```text
//!  page:  | epoch, 8 | partition, 4 | bytes, 4 | pairs, 4 | round, 4 | kind, 2 | node, 2 | serial, 4 | pairs ... |
//! ```

/// The length of the header in bytes.
pub(crate) const HEADER_BYTES: usize = 32;

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum PageKind {
    /// Whole pairs.
    Pairs = 1,
    /// A piece of a pair that is larger than a page; more follows on the next page of this producer.
    Piece = 2,
    /// The last piece of such a pair.
    LastPiece = 3,
    /// The last page of a result.
    End = 4,
}

/// The header of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub epoch: u64,
    pub partition: u32,
    pub bytes: u32,
    pub pairs: u32,
    pub round: u32,
    pub kind: PageKind,
    /// The node that the page's memory was taken from: an index, see [`Places`](crate::plan::placement::Places).
    pub node: u16,
    /// How many pages its producer has sent before, in this round to workers, or to the coordinator.
    pub serial: u32,
}

impl Header {
    pub fn write(&self, page: &mut [u8]) {
        page[..8].copy_from_slice(&self.epoch.to_le_bytes());
        let kind_and_node = u32::from(self.node) << 16 | u32::from(self.kind as u16);
        let words = [self.partition, self.bytes, self.pairs, self.round, kind_and_node, self.serial];
        for (at, word) in words.iter().enumerate() {
            page[8 + at * 4..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads the header of a received page.
    ///
    /// # Panics
    /// When the producer has written over it.
    pub fn read(page: &[u8]) -> Header {
        Header::try_read(page).expect("a header that its producer has not written over")
    }

    /// Reads the header of a received page. `None`: its producer has written over it.
    pub fn try_read(page: &[u8]) -> Option<Header> {
        let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
        let kind = match word(24) as u16 {
            1 => PageKind::Pairs,
            2 => PageKind::Piece,
            3 => PageKind::LastPiece,
            4 => PageKind::End,
            _ => return None,
        };
        let header = Header {
            epoch: u64::from_le_bytes(page[..8].try_into().expect("eight bytes")),
            partition: word(8),
            bytes: word(12),
            pairs: word(16),
            round: word(20),
            kind,
            node: (word(24) >> 16) as u16,
            serial: word(28),
        };
        (header.bytes as usize <= page.len() - HEADER_BYTES).then_some(header)
    }
}
