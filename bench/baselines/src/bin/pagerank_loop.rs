//! PageRank as a sequential loop over the links: `pagerank_loop STEPS LINKS`.
//!
//! Prints the ten pages that are reached most.

use std::error::Error;

const FOLLOW: f64 = 0.85;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [steps, path] = &arguments[..] else { return Err("STEPS LINKS".into()) };
    let bytes = std::fs::read(path)?;
    let links = || {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
        bytes.as_chunks::<8>().0.iter().map(move |link| (word(&link[..4]), word(&link[4..])))
    };
    let mut degrees = Vec::new();
    for (from, to) in links() {
        degrees.resize(degrees.len().max(from.max(to) + 1), 0u32);
        degrees[from] += 1;
    }
    let pages = degrees.len();
    let mut ranks = vec![1.0 / pages as f64; pages];
    for _ in 0..steps.parse()? {
        let mut next = vec![0.0; pages];
        for (from, to) in links() {
            next[to] += FOLLOW * ranks[from] / f64::from(degrees[from]);
        }
        let lost = 1.0 - next.iter().sum::<f64>();
        ranks = next.into_iter().map(|rank| rank + lost / pages as f64).collect();
    }
    let mut best: Vec<(usize, f64)> = ranks.into_iter().enumerate().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (page, rank) in best.iter().take(10) {
        println!("{page}\t{rank:.9}");
    }
    Ok(())
}
