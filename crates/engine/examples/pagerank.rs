//! PageRank: how often a reader who follows links at random comes to each page.
//!
//!     cargo run --release --example pagerank -- STEPS LINKS
//!
//! A link is two numbers of pages, from 0, each of 4 bytes, little-endian. Prints the ten pages that are reached most.

use gristmill::options::Buffer;
use gristmill::{Chunk, Emit, Input, Job, MapReduce, Next, ProgramError, Records};

/// The share of readers who follow a link; the others begin anew on any page.
const FOLLOW: f64 = 0.85;

/// The links whose shares are read together.
const AT_ONCE: usize = 64;

pub(crate) struct Links {
    /// The number of links on each page.
    degrees: Vec<u32>,
}

impl MapReduce for Links {
    type Key = u32;
    type Value = f64;

    fn keys(&self) -> Option<usize> {
        Some(self.degrees.len())
    }

    fn combiner(&self) -> Option<impl Fn(f64, f64) -> f64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, f64>) -> Result<(), ProgramError> {
        // What each link of a page passes on.
        let shares = chunk.state().as_chunks().0;
        // Shares are read for several links at once, so that the processor waits for all of them at the same time.
        let mut read = [0.0; AT_ONCE];
        for bytes in chunk.bytes().chunks(AT_ONCE * 8) {
            for ((from, _), share) in links(bytes).zip(&mut read) {
                *share = f64::from_le_bytes(shares[from as usize]);
            }
            links(bytes).zip(&read).for_each(|((_, to), share)| out.emit(to, *share));
        }
        Ok(())
    }
}

fn links(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|[a, b, c, d, e, f, g, h]| (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes([*e, *f, *g, *h])))
}

/// The pages of a block: their shares and their sums fit the second-level cache of a processor.
const BLOCK_BITS: u32 = 14;

/// Brings the links together that lead from one block of pages to another, so that a step finds both in the cache.
fn tiled(bytes: &[u8]) -> Vec<u8> {
    let last = links(bytes).map(|(from, to)| from.max(to)).max().unwrap_or(0);
    let blocks = (last >> BLOCK_BITS) as usize + 1;
    let tile = |(from, to): (u32, u32)| (to >> BLOCK_BITS) as usize * blocks + (from >> BLOCK_BITS) as usize;
    // Where the next link of each tile goes.
    let mut places = vec![0; blocks * blocks + 1];
    links(bytes).for_each(|link| places[tile(link) + 1] += 1);
    (1..places.len()).for_each(|at| places[at] += places[at - 1]);
    let mut tiled = vec![0; bytes.len()];
    let (to, _) = tiled.as_chunks_mut::<8>();
    for (link, bytes) in links(bytes).zip(bytes.as_chunks::<8>().0) {
        let place = &mut places[tile(link)];
        to[*place] = *bytes;
        *place += 1;
    }
    tiled
}

impl Links {
    /// Counts the links of a file.
    pub(crate) fn of(bytes: &[u8]) -> Links {
        let mut degrees = Vec::new();
        for (from, to) in links(bytes) {
            degrees.resize(degrees.len().max(from.max(to) as usize + 1), 0);
            degrees[from as usize] += 1;
        }
        Links { degrees }
    }

    pub(crate) fn job(&self, input: Input) -> Job<'_, Links> {
        // Pages are numbered, so each worker adds up in an array with a place for each.
        Job::new(self, input).records(Records::Fixed(8)).buffer(Buffer::Dense)
    }

    /// Returns the ranks after this many steps.
    pub(crate) fn ranks(&self, job: Job<'_, Links>, steps: u32) -> gristmill::Result<Vec<f64>> {
        let pages = self.degrees.len();
        let shares = |ranks: &[f64]| -> Vec<u8> {
            let mut bytes = vec![0; size_of_val(ranks)];
            for ((share, rank), links) in bytes.as_chunks_mut().0.iter_mut().zip(ranks).zip(&self.degrees) {
                *share = (rank / f64::from(*links)).to_le_bytes();
            }
            bytes
        };
        let mut ranks = vec![1.0 / pages as f64; pages];
        job.iterate(&shares(&ranks), |step| {
            let mut reached = 0.0;
            let mut next = vec![0.0; pages];
            step.for_each(|page, rank| {
                next[page as usize] = FOLLOW * rank;
                reached += FOLLOW * rank;
            });
            // Readers on a page without links begin anew, too.
            next.iter_mut().for_each(|rank| *rank += (1.0 - reached) / pages as f64);
            ranks = next;
            step.set_state(&shares(&ranks));
            if step.number() + 1 == steps { Next::Stop } else { Next::Input }
        })?;
        Ok(ranks)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [steps, path] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("STEPS and LINKS");
    let bytes = tiled(&std::fs::read(&path)?);
    let links = Links::of(&bytes);
    let ranks = links.ranks(links.job(Input::bytes("links", &bytes)?), steps.parse()?)?;
    let mut best: Vec<(usize, f64)> = ranks.into_iter().enumerate().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (page, rank) in best.iter().take(10) {
        println!("{page}\t{rank:.9}");
    }
    Ok(())
}
