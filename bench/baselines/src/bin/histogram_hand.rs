//! Histogram of a 24-bit BMP by hand: counts each value per channel. Prints `channel\tvalue\tcount`.

use baselines::{arguments, blocks, fail};
use std::io::Write;

/// Eight tables per channel, used in turn, so that equal neighbours do not wait for each other's store.
type Tables = [[u32; 256]; 3 * LANES];
const LANES: usize = 8;
/// Whole turns, and few enough that 32 bits cannot overflow before `add` empties the tables.
const BLOCK: usize = 3 * LANES * (16 << 10);

struct Counts {
    small: Box<Tables>,
    pixels: usize,
    total: [[u64; 256]; 3],
}

impl Counts {
    fn add(&mut self) {
        for (index, table) in self.small.iter_mut().enumerate() {
            for (total, count) in self.total[index % 3].iter_mut().zip(table) {
                *total += u64::from(std::mem::take(count));
            }
        }
        self.pixels = 0;
    }
}

fn count(counts: &mut Counts, block: &[u8]) {
    let (turns, rest) = block.as_chunks::<{ 3 * LANES }>();
    for turn in turns {
        // Loading three words of eight bytes is cheaper than loading 24 bytes.
        for word in 0..3 {
            let mut bytes = u64::from_le_bytes(turn[8 * word..][..8].try_into().expect("eight bytes"));
            for byte in 0..8 {
                counts.small[8 * word + byte][usize::from(bytes as u8)] += 1;
                bytes >>= 8;
            }
        }
    }
    for (index, &byte) in rest.iter().enumerate() {
        counts.small[index][usize::from(byte)] += 1;
    }
    counts.pixels += block.len();
    if counts.pixels > u32::MAX as usize - BLOCK {
        counts.add();
    }
}

fn main() -> std::io::Result<()> {
    let ([path], [threads]) = arguments("histogram_hand FILE.bmp [--threads N]", [("--threads", "2")]);
    let mut header = [0; 54];
    std::fs::File::open(&path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut header))?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")) as usize;
    let (start, width, bits) = (number(10), number(18), number(28) & 0xffff);
    if &header[..2] != b"BM" || bits != 24 || width * 3 % 4 != 0 {
        fail(format!("{path}: needs a 24-bit BMP whose rows have no padding"));
    }
    let new = || Counts { small: Box::new([[0; 256]; 3 * LANES]), pixels: 0, total: [[0; 256]; 3] };
    let threads = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let mut all = blocks::each(&path, start, BLOCK, threads, new, count)?;
    all.iter_mut().for_each(Counts::add);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (channel, name) in ["blue", "green", "red"].iter().enumerate() {
        for value in 0..256 {
            writeln!(out, "{name}\t{value}\t{}", all.iter().map(|counts| counts.total[channel][value]).sum::<u64>())?;
        }
    }
    Ok(())
}
