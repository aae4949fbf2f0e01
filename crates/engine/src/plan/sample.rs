//! Samples of the input: estimates for the whole from small pieces.

/// The size below which mapping an input is faster than sampling it.
pub(crate) const WORTH_BYTES: u64 = 16 << 10;

/// Measurements of the sampled pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// The number of pieces that were mapped in time.
    pub pieces: u64,
    /// Their input bytes.
    pub bytes: u64,
    /// The number of pairs that they emitted.
    pub pairs: u64,
    /// The bytes of these pairs in a page.
    pub pair_bytes: u64,
    /// The number of pairs whose keys were counted.
    pub told_apart: u64,
    /// The number of distinct keys among them.
    pub keys: u64,
    /// The bytes of these pairs, and of those of them that have the key with the most bytes.
    pub told_bytes: u64,
    pub heaviest_bytes: u64,
    /// The map function's nanoseconds per byte of input, in the fastest piece, because the first one pays for cold
    /// memory. A lower bound if no piece was finished in time.
    pub ns_per_byte: f64,
    /// The bytes that were read elsewhere in the input, to see whether they are in the page cache.
    pub read_bytes: u64,
    /// The nanoseconds that this reading waited, for a disk or a network. A lower bound if it did not end in time.
    pub wait_ns: u64,
}

/// A sample as a message to another process of this machine.
pub(crate) type SampleWords = [u64; 11];

impl Sample {
    pub fn to_words(self) -> SampleWords {
        let Sample {
            pieces,
            bytes,
            pairs,
            pair_bytes,
            told_apart,
            keys,
            told_bytes,
            heaviest_bytes,
            ns_per_byte,
            read_bytes,
            wait_ns,
        } = self;
        [
            pieces,
            bytes,
            pairs,
            pair_bytes,
            told_apart,
            keys,
            told_bytes,
            heaviest_bytes,
            ns_per_byte.to_bits(),
            read_bytes,
            wait_ns,
        ]
    }

    pub fn of_words(words: SampleWords) -> Sample {
        let [
            pieces,
            bytes,
            pairs,
            pair_bytes,
            told_apart,
            keys,
            told_bytes,
            heaviest_bytes,
            ns_per_byte,
            read_bytes,
            wait_ns,
        ] = words;
        let ns_per_byte = f64::from_bits(ns_per_byte);
        Sample {
            pieces,
            bytes,
            pairs,
            pair_bytes,
            told_apart,
            keys,
            told_bytes,
            heaviest_bytes,
            ns_per_byte,
            read_bytes,
            wait_ns,
        }
    }

    /// Estimates the nanoseconds that the map function takes for `bytes` of input.
    pub fn map_ns(&self, bytes: u64) -> f64 {
        self.ns_per_byte * bytes as f64
    }

    /// Estimates the nanoseconds that reading `bytes` of input waits.
    pub fn wait_ns_of(&self, bytes: u64) -> f64 {
        if self.read_bytes == 0 { 0.0 } else { self.wait_ns as f64 / self.read_bytes as f64 * bytes as f64 }
    }

    /// Estimates the number of pairs that `bytes` of input become.
    pub fn pairs_of(&self, bytes: u64) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.pairs as f64 / self.bytes as f64 * bytes as f64 }
    }
}

/// The sizes of partitions, as far as a sample shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// The number of pairs that were counted.
    pub counted: u64,
    /// The bytes of them that each partition has, heavy keys as counted and all others spread equally.
    pub of: Vec<f64>,
}

impl Weights {
    /// Returns the part of all bytes that the largest partition has.
    pub fn largest(&self) -> f64 {
        self.of.iter().copied().fold(0.0, f64::max) / self.of.iter().sum::<f64>()
    }
}
