//! Finds, for each pair of files, the number of lines that both have. The pairs are compared by threads, and each
//! comparison is a job with isolated workers.
//!
//!     cargo run --release --example from_rayon -- FILES

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError, Starter};
use rayon::prelude::*;

struct Lines;

impl MapReduce for Lines {
    type Key = Bytes;
    /// In which of the two files the line stands, a bit for each.
    type Value = u8;

    fn combiner(&self) -> Option<impl Fn(u8, u8) -> u8> {
        Some(|a, b| a | b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u8>) -> Result<(), ProgramError> {
        chunk.lines().for_each(|line| out.emit(line, 1 << chunk.tag()));
        Ok(())
    }
}

fn main() -> gristmill::Result<()> {
    // Before rayon starts its threads.
    let compare = Starter::<(String, String), u64>::new(|(a, b), answers| {
        let input = Input::paths([a]).chain(Input::paths([b]).tagged(1));
        let mut common = 0;
        Job::new(&Lines, input).run_each(|_, files| common += u64::from(files == 0b11))?;
        answers.push(common);
        Ok(())
    })?;
    let files: Vec<String> = std::env::args().skip(1).collect();
    let pairs: Vec<_> = files.iter().enumerate().flat_map(|(at, b)| files[..at].iter().map(move |a| (a, b))).collect();
    let found: Vec<u64> =
        pairs.par_iter().map(|(a, b)| compare.call((a, b))?.sum()).collect::<gristmill::Result<_>>()?;
    for ((a, b), common) in pairs.iter().zip(found) {
        println!("{a}\t{b}\t{common}");
    }
    Ok(())
}
