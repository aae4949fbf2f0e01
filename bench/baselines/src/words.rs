//! The command line and the output of the word-count programs.

use std::io::Write;
use std::path::PathBuf;

/// The definition of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tokens {
    /// Phoenix's rule: a letter followed by letters and apostrophes, in upper case.
    Alpha,
    /// Bytes between ASCII white space.
    Space,
}

/// The arguments: `PROGRAM FILE [--tokens alpha|space] [--threads N] [--top K]`.
pub struct Args {
    pub path: PathBuf,
    pub tokens: Tokens,
    pub threads: usize,
    pub top: usize,
}

impl Args {
    /// Parses the command line; on an error, prints the usage and exits with 2.
    pub fn parse() -> Self {
        match Self::from_words(std::env::args().skip(1)) {
            Ok(args) => args,
            Err(what) => {
                eprintln!("{what}\nusage: PROGRAM FILE [--tokens alpha|space] [--threads N] [--top K]");
                std::process::exit(2)
            }
        }
    }

    fn from_words(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Args { path: PathBuf::new(), tokens: Tokens::Alpha, threads: 2, top: 10 };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--tokens" => {
                    args.tokens = match value()?.as_str() {
                        "alpha" => Tokens::Alpha,
                        "space" => Tokens::Space,
                        other => return Err(format!("--tokens is alpha or space, not {other}")),
                    }
                }
                "--threads" => {
                    args.threads = value()?.parse().ok().filter(|&n| n > 0).ok_or("--threads needs 1 or more")?
                }
                "--top" => args.top = value()?.parse().map_err(|e| format!("--top: {e}"))?,
                _ if args.path.as_os_str().is_empty() => args.path = word.into(),
                _ => return Err(format!("unexpected {word}")),
            }
        }
        if args.path.as_os_str().is_empty() { Err("no FILE given".into()) } else { Ok(args) }
    }
}

/// Orders words by descending count, then by their bytes.
fn by_count(a: &(&[u8], u64), b: &(&[u8], u64)) -> std::cmp::Ordering {
    b.1.cmp(&a.1).then(a.0.cmp(b.0))
}

/// Prints the most frequent words as `word\tcount`, and the number of words to stderr.
pub fn print_top<'a>(
    distinct: usize,
    total: u64,
    words: impl Iterator<Item = (&'a [u8], u64)>,
    top: usize,
) -> std::io::Result<()> {
    let mut words: Vec<(&[u8], u64)> = words.collect();
    if words.len() > top && top > 0 {
        words.select_nth_unstable_by(top - 1, by_count);
    }
    words.truncate(top);
    words.sort_unstable_by(by_count);
    let mut out = std::io::stdout().lock();
    for (word, count) in words {
        out.write_all(word)?;
        writeln!(out, "\t{count}")?;
    }
    eprintln!("distinct {distinct} total {total}");
    Ok(())
}
