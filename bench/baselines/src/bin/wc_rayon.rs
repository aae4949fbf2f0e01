//! Word count as a good Rust programmer writes it in an afternoon: a memory map, rayon's fold and reduce, hashbrown.

use baselines::words::{Args, Tokens, print_top};
use hashbrown::HashMap;
use rayon::prelude::*;

type Counts = HashMap<Vec<u8>, u64>;

fn count_words(mut counts: Counts, line: &[u8], tokens: Tokens) -> Counts {
    match tokens {
        Tokens::Space => {
            for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                *counts.entry_ref(word).or_insert(0) += 1;
            }
        }
        Tokens::Alpha => {
            let mut upper = Vec::new();
            for run in line.split(|&byte| !byte.is_ascii_alphabetic() && byte != b'\'') {
                if let Some(start) = run.iter().position(u8::is_ascii_alphabetic) {
                    upper.clear();
                    upper.extend(run[start..].iter().map(u8::to_ascii_uppercase));
                    *counts.entry_ref(&upper[..]).or_insert(0) += 1;
                }
            }
        }
    }
    counts
}

fn merge(a: Counts, b: Counts) -> Counts {
    let (mut large, small) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    for (word, count) in small {
        *large.entry(word).or_insert(0) += count;
    }
    large
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global().expect("no pool exists yet");
    let file = std::fs::File::open(&args.path)?;
    // SAFETY: a benchmark's input does not change while it is read.
    let text = unsafe { memmap2::Mmap::map(&file)? };
    let counts = text
        .par_split(|&byte| byte == b'\n')
        .fold(Counts::new, |counts, line| count_words(counts, line, args.tokens))
        .reduce(Counts::new, merge);
    let total = counts.values().sum();
    print_top(counts.len(), total, counts.iter().map(|(word, &count)| (&word[..], count)), args.top)
}
