//! What a look at a few small pieces of the input says about all of it.

/// Inputs with fewer bytes are mapped sooner than looked at.
pub(crate) const WORTH_BYTES: u64 = 16 << 10;

/// What the pieces say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Pieces that were mapped in time.
    pub pieces: u64,
    /// Their bytes of input.
    pub bytes: u64,
    /// Pairs that they emitted, and the bytes of these in a page.
    pub pairs: u64,
    pub pair_bytes: u64,
    /// Pairs whose keys were told apart, and how many keys those were.
    pub told_apart: u64,
    pub keys: u64,
    /// Nanoseconds of the map function per byte of input, of the fastest piece: the first pays for cold memory. At least
    /// this, if no piece was finished in time.
    pub ns_per_byte: f64,
}

impl Sample {
    /// Nanoseconds that the map function takes for `bytes` of input.
    pub fn map_ns(&self, bytes: u64) -> f64 {
        self.ns_per_byte * bytes as f64
    }

    /// Pairs that `bytes` of input become.
    pub fn pairs_of(&self, bytes: u64) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.pairs as f64 / self.bytes as f64 * bytes as f64 }
    }
}
