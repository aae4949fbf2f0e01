//! Frames, which cross from the process that runs a job to the one that asked for it.
//!
//! ```text
//!  B records  |  P progress, as JSON  |  W a sentence  |  others are those of the Python side
//!  | kind, 1 | length, 4 | bytes |
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A block of records is sent when it has this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// The writing end of a pipe.
pub struct Frames {
    pipe: Mutex<File>,
    /// The pairs of the result that were sent, by this run of the stage and those before it.
    sent: AtomicU64,
}

impl Frames {
    /// A pipe to which runs before this one have `sent` pairs of the result already.
    pub fn new(pipe: File, sent: u64) -> Frames {
        Frames { pipe: Mutex::new(pipe), sent: sent.into() }
    }

    /// Returns how many pairs of the result were sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sends a frame.
    pub fn send(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let mut head = [kind, 0, 0, 0, 0];
        head[1..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let mut pipe = self.pipe.lock().expect("no thread panics while it writes");
        pipe.write_all(&head)?;
        pipe.write_all(bytes)
    }
}

/// Gathers the records of pairs until they fill a block. A stage that is run again, with another form of values,
/// makes the same pairs in the same order, so those that were sent are left out.
pub struct Blocks<'f> {
    frames: &'f Frames,
    block: Vec<u8>,
    pairs: u64,
    left_out: u64,
}

impl<'f> Blocks<'f> {
    pub fn new(frames: &'f Frames) -> Blocks<'f> {
        Blocks { frames, block: Vec::with_capacity(2 * BLOCK_BYTES), pairs: 0, left_out: frames.sent() }
    }

    /// Adds a pair, whose records `append` writes. Sends the block if it is full.
    pub fn add(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.left_out > 0 {
            self.left_out -= 1;
            return Ok(());
        }
        append(&mut self.block);
        self.pairs += 1;
        if self.block.len() < BLOCK_BYTES { Ok(()) } else { self.flush() }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.frames.send(b'B', &self.block)?;
        self.frames.sent.fetch_add(self.pairs, Ordering::Relaxed);
        self.block.clear();
        self.pairs = 0;
        Ok(())
    }
}
