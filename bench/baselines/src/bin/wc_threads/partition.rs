//! The destination of a full table: chunks of records per partition and thread, read later by the thread that adds up
//! the partition.

use crate::memory::Zeroed;
use crate::table::{SHORT, Slot, Table};

pub const PARTITION_BITS: u32 = 8;
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

const CHUNK: usize = 16 << 10;
const BLOCK: usize = 4 << 20;

/// ```text
///  0      4     8       16
///  | hash | len | count | key, padded with zeros to 8 bytes |
/// ```
#[repr(C)]
struct Header {
    hash: u32,
    len: u32,
    count: u64,
}

const HEADER: usize = size_of::<Header>();

#[derive(Clone, Copy)]
struct Chunk {
    start: *const u8,
    used: usize,
    room: usize,
}

pub struct Partitions {
    chunks: Vec<Vec<Chunk>>,
    /// The blocks from which chunks are cut, front to back.
    blocks: Vec<Zeroed>,
    block_used: usize,
}

// SAFETY: the chunks lie in `blocks`. One thread writes them before it hands them all over; afterwards they are only
// read.
unsafe impl Send for Partitions {}
// SAFETY: as above.
unsafe impl Sync for Partitions {}

impl Partitions {
    pub fn new() -> Self {
        Self { chunks: vec![Vec::new(); PARTITIONS], blocks: Vec::new(), block_used: BLOCK }
    }

    /// Appends a key and its count.
    #[inline(always)]
    pub fn push(&mut self, slot: &Slot) {
        let len = slot.len as usize;
        let bytes = HEADER + len.next_multiple_of(8);
        let partition = (slot.hash >> (32 - PARTITION_BITS)) as usize;
        // A short key is written as 16 bytes, whatever its length; the next record overwrites the surplus.
        let needed = bytes.max(HEADER + SHORT);
        if self.chunks[partition].last().is_none_or(|chunk| chunk.room - chunk.used < needed) {
            let chunk = self.cut(needed.max(CHUNK));
            self.chunks[partition].push(chunk);
        }
        let chunk = self.chunks[partition].last_mut().expect("one was pushed if there was none");
        // SAFETY: `needed` bytes of the chunk are free, and records keep it aligned to 8.
        unsafe {
            let record = chunk.start.cast_mut().add(chunk.used);
            record.cast::<Header>().write(Header { hash: slot.hash, len: slot.len, count: slot.count });
            if len <= SHORT {
                record.add(HEADER).cast::<[u64; 2]>().write(slot.key);
            } else {
                record.add(HEADER).copy_from_nonoverlapping(slot.bytes().as_ptr(), len);
            }
        }
        chunk.used += bytes;
    }

    #[cold]
    fn cut(&mut self, bytes: usize) -> Chunk {
        let bytes = bytes.next_multiple_of(CHUNK);
        if bytes > BLOCK {
            let own = Zeroed::new(bytes);
            let start = own.start();
            // Inserted before the block in use, which must stay last.
            self.blocks.insert(0, own);
            return Chunk { start, used: 0, room: bytes };
        }
        if self.block_used + bytes > BLOCK {
            self.blocks.push(Zeroed::new(BLOCK));
            self.block_used = 0;
        }
        let block = self.blocks.last().expect("pushed above if the last was full");
        // SAFETY: the range is inside the block, as checked above.
        let start = unsafe { block.start().add(self.block_used) };
        self.block_used += bytes;
        Chunk { start, used: 0, room: bytes }
    }

    /// Adds the records of one partition to a table. The table points to long keys, which stay here.
    pub fn add_to(&self, partition: usize, table: &mut Table) {
        for chunk in &self.chunks[partition] {
            let mut at = 0;
            while at < chunk.used {
                if !table.has_room(1) {
                    table.grow();
                }
                // SAFETY: records follow each other up to `used`, each as `push` wrote it.
                unsafe {
                    let record = chunk.start.add(at);
                    let &Header { hash, len, count } = &*record.cast::<Header>();
                    let key = record.add(HEADER);
                    if len as usize <= SHORT {
                        let mut words = [key.cast::<u64>().read(), 0];
                        if len > 8 {
                            words[1] = key.cast::<u64>().add(1).read();
                        }
                        table.add_short(words, hash, len, count);
                    } else {
                        let bytes = std::slice::from_raw_parts(key, len as usize);
                        table.add_long(bytes, hash.into(), hash, count, <[u8]>::as_ptr);
                    }
                    at += HEADER + (len as usize).next_multiple_of(8);
                }
            }
        }
    }
}
