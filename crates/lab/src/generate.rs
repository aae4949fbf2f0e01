//! `gristmill-lab generate`: makes input for the applications from a seed.
//!
//! The large size is that of DMR (Yu and Zhang 2017, table 1; docs/bibliography.md). The small size is for a first
//! look, the medium one for measuring on a small machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fastrand::Rng;
use gristmill_apps::npy_header;
use gristmill_cli::{Failure, print};
use gristmill_os::folder::Folder;
use gristmill_os::whole_file::Aside;

use crate::records;

/// Make input for an application, the same for the same seed
///
/// Prints the names of the files that it made.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Generate {
    /// The application
    #[arg(value_enum)]
    kind: Dataset,

    /// The size of the input
    #[arg(long, value_enum, default_value_t)]
    size: Size,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Directory of the files
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    output: PathBuf,

    /// Replace files that are there
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab generate word-count --size large            text of 100 MB, with 123,748 different words at most
  gristmill-lab generate kmeans -o /tmp && gristmill kmeans -k 10 /tmp/kmeans-small.csv";

/// The use of a generated input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dataset {
    /// Text in which the n-th most frequent word is about n times rarer than the first: 8, 50, 100 MB
    WordCount,
    /// A picture of random pixels (BMP): 24, 200, 1400 MB
    Histogram,
    /// Byte pairs along a line: 32, 200, 500 MB
    LinearRegression,
    /// Words, one per line, and a file of four keys: 16, 100, 500 MB
    StringMatch,
    /// Points of three whole numbers (CSV): 10,000, 100,000, 100,000
    #[value(name = "kmeans")]
    KMeans,
    /// A square matrix (.npy) of 200, 1000, 4000 rows
    Pca,
    /// Two square matrices (.npy) of 400, 1000, 2000 rows
    MatrixMultiply,
    /// TeraSort records: 16, 100, 1000 MB
    Sort,
    /// A directory of small texts, 1 KiB each: 1,000, 10,000, 50,000
    SmallFiles,
    /// A directory of lines of the letter a, one in each file: 1,000 of 1 kB, 10,000 of 100 kB, 50,000 of 500 kB (25
    /// GB)
    Palindromes,
}

/// How much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// For a first look
    #[default]
    Small,
    /// For a measurement
    Medium,
    /// The size of the papers from which the applications are (docs/bibliography.md)
    Large,
}

impl Generate {
    pub fn run(&self) -> Result<(), Failure> {
        let Generate { kind, size, seed, ref output, force } = *self;
        let present = if force { Present::Replace } else { Present::Refuse };
        let generator = Generator { size, seed, directory: output, present };
        for path in generator.make(kind)? {
            print(path)?;
        }
        Ok(())
    }
}

/// A generator of input files.
pub struct Generator<'d> {
    pub size: Size,
    pub seed: u64,
    pub directory: &'d Path,
    pub present: Present,
}

/// The treatment of files that exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// Use the file as it is.
    Keep,
    Replace,
    /// Keep the file and make nothing.
    Refuse,
}

impl Generator<'_> {
    /// Makes the input for `kind` and returns its files, the keys of string-match first.
    pub fn make(&self, kind: Dataset) -> Result<Vec<PathBuf>, Failure> {
        Folder::make(self.directory).map_err(|source| Failure::output(self.directory, source))?;
        let path = |end: &str| self.directory.join(format!("{}-{}{end}", name(kind), name(self.size)));
        let ends: &[&str] = match kind {
            Dataset::WordCount => &[".txt"],
            Dataset::Histogram => &[".bmp"],
            Dataset::LinearRegression => &[".bin"],
            Dataset::StringMatch => &["-keys.txt", ".txt"],
            Dataset::KMeans => &[".csv"],
            Dataset::Pca => &[".npy"],
            Dataset::MatrixMultiply => &["-left.npy", "-right.npy"],
            Dataset::Sort | Dataset::SmallFiles | Dataset::Palindromes => &[""],
        };
        if self.present == Present::Refuse
            && let Some(there) = ends.iter().map(|end| path(end)).find(|path| path.symlink_metadata().is_ok())
        {
            return Err(Failure::Usage(format!(
                "{} is there already: name another directory with --output, or replace it with --force",
                there.display()
            )));
        }
        let of_size = |sizes: [u64; 3]| sizes[self.size as usize];
        let mut rng = Rng::with_seed(self.seed);
        let rng = &mut rng;
        const MB: u64 = 1_000_000;
        Ok(match kind {
            Dataset::WordCount => vec![self.file(path(".txt"), |to| text(to, rng, of_size([8, 50, 100]) * MB))?],
            Dataset::Histogram => {
                let rows = of_size([8 * MB, 66 * MB, 466 * MB]).isqrt() as u32;
                vec![self.file(path(".bmp"), |to| picture(to, rng, rows))?]
            }
            Dataset::LinearRegression => {
                vec![self.file(path(".bin"), |to| pairs(to, rng, of_size([32, 200, 500]) * MB))?]
            }
            Dataset::StringMatch => vec![
                self.file(path("-keys.txt"), |to| to.write_all((KEYS.join("\n") + "\n").as_bytes()))?,
                self.file(path(".txt"), |to| lines(to, rng, of_size([16, 100, 500]) * MB))?,
            ],
            Dataset::KMeans => {
                vec![self.file(path(".csv"), |to| points(to, rng, of_size([10_000, 100_000, 100_000])))?]
            }
            Dataset::Pca => vec![self.file(path(".npy"), |to| square(to, rng, of_size([200, 1000, 4000])))?],
            Dataset::MatrixMultiply => {
                let rows = of_size([400, 1000, 2000]);
                let mut factor = |end| self.file(path(end), |to| square(to, rng, rows));
                vec![factor("-left.npy")?, factor("-right.npy")?]
            }
            Dataset::Sort => {
                let count = of_size([16, 100, 1000]) * MB / 100;
                vec![self.file(path(""), |to| records::generate(self.seed, 0..count, to))?]
            }
            Dataset::SmallFiles => {
                let text = || {
                    let mut bytes = Vec::with_capacity(2048);
                    text(&mut bytes, rng, 1024).map(|()| bytes[..1024].to_vec())
                };
                vec![directory(path(""), of_size([1_000, 10_000, 50_000]), text)?]
            }
            // The sizes of thread bottlenecks (Chen 2020).
            Dataset::Palindromes => {
                let [files, letters] = [of_size([1_000, 10_000, 50_000]), of_size([1_000, 100_000, 500_000])];
                vec![lines_of_one_letter(path(""), files, letters as usize)?]
            }
        })
    }

    fn file(
        &self,
        path: PathBuf,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<PathBuf, Failure> {
        if self.present == Present::Keep && path.exists() {
            return Ok(path);
        }
        let written = || -> io::Result<()> {
            let aside = Aside::create(&path)?;
            let mut to = BufWriter::with_capacity(1 << 20, &aside.file);
            write(&mut to)?;
            to.flush()?;
            drop(to);
            aside.publish()
        };
        written().map_err(|source| Failure::output(&path, source))?;
        Ok(path)
    }
}

/// Makes a directory of files with the contents that `content` returns.
fn directory<C: AsRef<[u8]>>(
    path: PathBuf,
    files: u64,
    mut content: impl FnMut() -> io::Result<C>,
) -> Result<PathBuf, Failure> {
    let mut make = || {
        let folder = Folder::make(&path)?;
        (0..files).try_for_each(|number| {
            // Written directly, because a thousand files are not worth a sync each.
            let name = format!("{number:05}.txt");
            folder.remove(&name)?;
            folder.make_file(&name, 0o666)?.write_all(content()?.as_ref())
        })
    };
    match make() {
        Ok(()) => Ok(path),
        Err(source) => Err(Failure::output(&path, source)),
    }
}

/// Makes a directory of files that hold a line of the letter a each.
pub fn lines_of_one_letter(path: PathBuf, files: u64, letters: usize) -> Result<PathBuf, Failure> {
    let line = vec![b'a'; letters];
    directory(path, files, || Ok(line.as_slice()))
}

/// Returns the name of a value on the command line.
pub fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The number of distinct words of a text.
const WORDS: f64 = 123_748.0;

/// Generates a word whose rank roughly follows Zipf's law: the logarithm of the rank is uniform.
fn word(rng: &mut Rng, to: &mut Vec<u8>) {
    let mut rank = WORDS.powf(rng.f64()) as usize;
    loop {
        to.push(b"bdfgklmnprstvz"[rank % 14]);
        to.push(b"aeiou"[rank / 14 % 5]);
        rank /= 70;
        if rank == 0 {
            return;
        }
    }
}

fn text(to: &mut impl Write, rng: &mut Rng, bytes: u64) -> io::Result<()> {
    let (mut line, mut written) = (Vec::new(), 0);
    while written < bytes {
        line.clear();
        for _ in 0..rng.usize(4..20) {
            word(rng, &mut line);
            line.extend_from_slice(if rng.u8(..) < 20 { b", " } else { b" " });
        }
        line.pop();
        line.push(b'\n');
        written += line.len() as u64;
        to.write_all(&line)?;
    }
    Ok(())
}

/// The keys of the string-match programs in the Phoenix family.
const KEYS: [&str; 4] = ["Helloworld", "howareyou", "ferrari", "whotheman"];

fn lines(to: &mut impl Write, rng: &mut Rng, bytes: u64) -> io::Result<()> {
    let (mut line, mut written) = (Vec::new(), 0);
    while written < bytes {
        line.clear();
        match rng.u32(..50_000) {
            0 => line.extend_from_slice(KEYS[rng.usize(..KEYS.len())].as_bytes()),
            _ => word(rng, &mut line),
        }
        line.push(b'\n');
        written += line.len() as u64;
        to.write_all(&line)?;
    }
    Ok(())
}

/// Returns the mean of two numbers byte by byte: no carry reaches the next byte.
fn means(a: u64, b: u64) -> u64 {
    (a & b) + ((a ^ b) >> 1 & 0x7f7f_7f7f_7f7f_7f7f)
}

/// Writes a square BMP. Values in the middle are more frequent than others.
fn picture(to: &mut impl Write, rng: &mut Rng, rows: u32) -> io::Result<()> {
    let columns = rows / 4 * 4; // No padding.
    let bytes = 3 * columns * rows;
    to.write_all(b"BM")?;
    for word in [54 + bytes, 0, 54, 40, columns, rows, 1 | 24 << 16, 0, bytes, 0, 0, 0, 0] {
        to.write_all(&word.to_le_bytes())?;
    }
    let mut left = bytes as usize;
    while left > 0 {
        let pixels = means(rng.u64(..), rng.u64(..)).to_le_bytes();
        to.write_all(&pixels[..left.min(8)])?;
        left = left.saturating_sub(8);
    }
    Ok(())
}

/// Writes bytes of x and y in turn; y is about half of x.
fn pairs(to: &mut impl Write, rng: &mut Rng, bytes: u64) -> io::Result<()> {
    const X: u64 = 0x00ff_00ff_00ff_00ff;
    for _ in 0..bytes / 8 {
        let (x, noise) = (rng.u64(..) & X, rng.u64(..) >> 2 & 0x003f_003f_003f_003f);
        let y = (x >> 1 & X) + noise;
        to.write_all(&(x | y << 8).to_le_bytes())?;
    }
    Ok(())
}

fn points(to: &mut impl Write, rng: &mut Rng, count: u64) -> io::Result<()> {
    (0..count).try_for_each(|_| writeln!(to, "{},{},{}", rng.u32(..1000), rng.u32(..1000), rng.u32(..1000)))
}

/// Writes a matrix of whole numbers below 100 as float64 in numpy's format.
fn square(to: &mut impl Write, rng: &mut Rng, rows: u64) -> io::Result<()> {
    to.write_all(&npy_header(rows as usize, rows as usize))?;
    (0..rows * rows).try_for_each(|_| to.write_all(&f64::from(rng.u32(..100)).to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_bytes_and_another_makes_others() {
        let generated = |seed| {
            let mut bytes = Vec::new();
            text(&mut bytes, &mut Rng::with_seed(seed), 10_000).expect("written to memory");
            bytes
        };
        assert_eq!(generated(1), generated(1));
        assert_ne!(generated(1), generated(2));
    }

    #[test]
    fn frequent_words_are_much_more_frequent() {
        let mut bytes = Vec::new();
        text(&mut bytes, &mut Rng::with_seed(1), 100_000).expect("written to memory");
        let words = || bytes.split(|byte| !byte.is_ascii_lowercase()).filter(|word| !word.is_empty());
        let of_length = |length| words().filter(|word| word.len() == length).count();
        let distinct: std::collections::HashSet<_> = words().collect();
        // Ranks below 70, below 4900, and the rest have about a third of the text each.
        assert!((2..=6).step_by(2).all(|length| of_length(length) > words().count() / 5));
        assert!(distinct.len() * 2 < words().count(), "{} of {}", distinct.len(), words().count());
    }

    #[test]
    fn means_are_taken_byte_by_byte() {
        let (a, b) = ([255, 0, 10, 255, 1, 2, 128, 7], [255, 255, 20, 0, 1, 3, 129, 9]);
        let expected: Vec<u8> =
            a.iter().zip(b).map(|(a, b): (&u8, u8)| ((u16::from(*a) + u16::from(b)) / 2) as u8).collect();
        assert_eq!(means(u64::from_le_bytes(a), u64::from_le_bytes(b)).to_le_bytes()[..], expected);
    }
}
