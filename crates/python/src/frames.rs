//! What crosses from the process that runs a job to the one that asked for it: frames, each with a kind and its length.
//!
//! ```text
//!  B records  |  P progress, as JSON  |  W a sentence  |  others are those of the Python side
//!  | kind, 1 | length, 4 | bytes |
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

/// A block of records is sent when it has this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// The writing end of a pipe.
pub struct Frames {
    pipe: Mutex<File>,
}

impl Frames {
    pub fn new(pipe: File) -> Frames {
        Frames { pipe: Mutex::new(pipe) }
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

/// Gathers records until they fill a block.
pub struct Blocks<'f> {
    frames: &'f Frames,
    pub block: Vec<u8>,
}

impl<'f> Blocks<'f> {
    pub fn new(frames: &'f Frames) -> Blocks<'f> {
        Blocks { frames, block: Vec::with_capacity(2 * BLOCK_BYTES) }
    }

    /// Sends the block if it is full.
    pub fn offer(&mut self) -> io::Result<()> {
        if self.block.len() < BLOCK_BYTES { Ok(()) } else { self.flush() }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.frames.send(b'B', &self.block)?;
        self.block.clear();
        Ok(())
    }
}
