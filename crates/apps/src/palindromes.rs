//! Palindromes: counts the substrings of each file's lines that read the same backwards, as in thread
//! bottlenecks (Chen 2020; docs/bibliography.md).
//!
//! Every occurrence counts, byte by byte: `aaa` has six (three of one byte, two of two, one of three). The end of a
//! line, LF or CRLF, does not belong to it.

use std::path::Path;

use gristmill::files::{Memory, TooLarge};
use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError, Records};

use crate::number::Overflow;
use crate::sum::{self, whole};

/// The algorithm that finds palindromes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Chosen for each line: [`Brute`](Algorithm::Brute), unless it finds more than one palindrome per byte; then
    /// [`Manacher`](Algorithm::Manacher) counts the line from its start.
    #[default]
    Auto,
    /// Outwards from every centre: time proportional to the number of palindromes, up to the square of the length.
    Brute,
    /// Outwards from every centre, without comparing a byte twice (Manacher, 1975): time proportional to the length of
    /// the line, and four times its memory.
    Manacher,
    /// A palindromic tree: time proportional to the length of the line. The tree may take a hundred times the memory
    /// of the line. If there is not enough, Manacher's algorithm is used.
    Tree,
}

impl Algorithm {
    /// Returns the most bytes that pass between caches and memory for each byte of a line, if neither the line nor what
    /// is made of it stays in a cache. A byte of memory that is written is fetched before. Derived from the code, as
    /// Chen (2020) does for its own.
    pub fn traffic(self) -> u64 {
        const LINE: u64 = 1;
        match self {
            Algorithm::Brute => LINE,
            // The line is read, and a radius written, for both kinds of centres.
            Algorithm::Auto | Algorithm::Manacher => 2 * (LINE + 2 * RADIUS_BYTES),
            // A node for each byte.
            Algorithm::Tree => LINE + 2 * size_of::<Node>() as u64,
        }
    }
}

/// The palindromes longer than one byte, per byte of the line, up to which [`Algorithm::Auto`] counts them one by one.
/// Prose has one in 25 bytes, and a line of one letter has half as many per byte as it has bytes.
const FEW: u64 = 1;

/// Counts palindromes by file.
///
/// ```
/// use gristmill_apps::{Algorithm, Palindromes};
///
/// assert_eq!(Palindromes::new(Algorithm::Auto).in_line(b"abba"), 6);
/// ```
#[derive(Clone, Debug)]
pub struct Palindromes {
    algorithm: Algorithm,
    /// The text that is counted instead of each record.
    constant: Option<Vec<u8>>,
}

impl Palindromes {
    /// Makes a counter that uses this algorithm.
    pub fn new(algorithm: Algorithm) -> Palindromes {
        Palindromes { algorithm, constant: None }
    }

    /// Counts the lines of `text` for each record, whatever the record holds. Thread bottlenecks (Chen 2020) compares
    /// with such a job to tell whether reading limits the other one.
    ///
    /// ```
    /// use gristmill::{Input, Isolation};
    /// use gristmill_apps::{Algorithm, Palindromes};
    ///
    /// let program = Palindromes::new(Algorithm::Auto).constant(b"abba\naa\n".to_vec());
    /// let (counts, _) = program.job(Input::bytes("three", b"\n\n\n")?).isolation(Isolation::Thread).run()?;
    /// assert_eq!(Palindromes::total(counts.iter().map(|(_, count)| count)), Ok(3 * (6 + 3)));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn constant(mut self, text: Vec<u8>) -> Palindromes {
        self.constant = Some(text);
        self
    }

    /// Adds up the counts of files in the result. Lines of some GiB can have 2^60 palindromes.
    ///
    /// # Errors
    /// The total is 2^64 - 1 or more.
    pub fn total(counts: impl IntoIterator<Item = u64>) -> Result<u64, Overflow> {
        whole(counts.into_iter().fold(0, sum::ADD_WHOLE))
    }

    /// Makes the job. Its result maps the name of each file that has a line to a count for [`Palindromes::total`].
    pub fn job(&self, input: Input) -> Job<'_, Palindromes> {
        Job::new(self, input).records(Records::Lines)
    }

    /// Counts the palindromic substrings of one line.
    pub fn in_line(&self, line: &[u8]) -> u64 {
        self.in_lines([line].into_iter(), Memory::of(u64::MAX)).expect("the memory is not limited")
    }

    /// Counts those of all lines of a text.
    pub fn in_text(&self, text: &[u8]) -> u64 {
        self.in_lines(lines_of(text), Memory::of(u64::MAX)).expect("the memory is not limited")
    }

    /// Counts those of some lines within a memory limit. An error holds the line that is too long, and the reason.
    fn in_lines<'l>(
        &self,
        mut lines: impl Iterator<Item = &'l [u8]>,
        memory: Memory,
    ) -> Result<u64, (&'l [u8], TooLarge)> {
        let mut tree = Tree::default();
        lines.try_fold(0, |sum, line| {
            let count = match self.algorithm {
                Algorithm::Auto => from_centres(line, FEW * line.len() as u64),
                Algorithm::Brute => from_centres(line, u64::MAX),
                Algorithm::Manacher => None,
                Algorithm::Tree if memory.allow(Tree::bytes_max(line)).is_ok() => Some(tree.count(line)),
                Algorithm::Tree => {
                    tree = Tree::default();
                    None
                }
            };
            let manacher = || memory.allow(RADIUS_BYTES * line.len() as u64).map(|()| around_centres(line));
            let count = count.map_or_else(manacher, Ok).map_err(|why| (line, why))?;
            Ok(sum + count)
        })
    }
}

impl MapReduce for Palindromes {
    type Key = Bytes;
    type Value = u64;
    const UNPACKS: bool = true;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(sum::ADD_WHOLE)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let memory = chunk.source().memory();
        let counted = match &self.constant {
            None => self.in_lines(chunk.lines(), memory),
            Some(text) => chunk.lines().try_fold(0, |sum, record| {
                let count = self.in_lines(lines_of(text), memory).map_err(|(_, why)| (record, why))?;
                Ok(sum + count)
            }),
        };
        let count = match counted {
            Ok(count) => count,
            Err((line, why)) => {
                let at = chunk.place_of(line);
                return Err(chunk.too_large(at, format!("to find the palindromes of its {} bytes {why}", line.len())));
            }
        };
        let name: &Path = &chunk.source().name;
        out.emit(name.as_os_str().as_encoded_bytes(), count);
        Ok(())
    }
}

/// Returns the lines of a text, without LF or CRLF.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The memory that [`around_centres`] takes for each byte of a line.
const RADIUS_BYTES: u64 = size_of::<u32>() as u64;

/// Extends palindromes outwards from each centre, but compares no byte inside a palindrome found before: within it,
/// the text around a centre equals the text around the centre's mirror image (Manacher, 1975).
fn around_centres(line: &[u8]) -> u64 {
    let mut radii: Vec<u32> = Vec::with_capacity(line.len());
    // Centres on bytes, then before bytes. A palindrome of radius r ends before byte centre + r; an even one begins
    // one byte earlier.
    let mut count_all = |even: usize| -> u64 {
        radii.clear();
        // The start and end of the palindrome so far that ends last.
        let (mut start, mut end) = (0, 0);
        for centre in 0..line.len() {
            let mut radius = 0;
            if centre < end {
                let mirror = start + end - 1 + even - centre;
                radius = radii.get(mirror).map_or(0, |radius| *radius as usize).min(end - centre);
            }
            while radius + even <= centre && line.get(centre + radius) == Some(&line[centre - radius - even]) {
                radius += 1;
            }
            if centre + radius > end {
                (start, end) = (centre + 1 - radius - even, centre + radius);
            }
            radii.push(radius as u32);
        }
        radii.iter().map(|radius| u64::from(*radius)).sum()
    };
    count_all(0) + count_all(1)
}

/// Counts outwards from each centre, unless more than `most` palindromes are longer than one byte.
fn from_centres(line: &[u8], most: u64) -> Option<u64> {
    let mut longer = 0;
    // Centres lie on a byte or between two; both ends of a palindrome are equally far from its centre.
    for centre in 0..(2 * line.len()).saturating_sub(1) {
        let (before, after) = (line[..centre.div_ceil(2)].iter().rev(), &line[centre / 2 + 1..]);
        longer += before.zip(after).take_while(|(a, b)| a == b).count() as u64;
        if longer > most {
            return None;
        }
    }
    Some(longer + line.len() as u64)
}

/// The distinct palindromes of a line (Rubinchik and Shur, 2015). A node is a palindrome. Its link is its longest
/// proper suffix that is a palindrome too, and an edge adds one byte at both ends.
struct Tree {
    nodes: Vec<Node>,
    /// The palindromes of one byte. Every other byte of a line looks one up, and a list of them would be long.
    single: [u32; 256],
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { nodes: Vec::new(), single: [NONE; 256] }
    }
}

#[derive(Clone, Copy)]
struct Node {
    /// The length. The node before the empty one has -1, so that adding a byte at both ends makes one byte.
    len: i64,
    link: u32,
    /// The number of palindromic suffixes, which is the number of palindromes that end where it ends.
    suffixes: u32,
    /// The first of its edges, a list: in most lines only a few different bytes extend one palindrome.
    first_child: u32,
    /// The next edge of its parent.
    sibling: u32,
    /// The byte of the edge that leads here.
    byte: u8,
}

/// The two nodes that are not palindromes: single bytes extend the first, pairs of equal bytes the second.
const BEFORE_EMPTY: u32 = 0;
const EMPTY: u32 = 1;
/// No node. The first node is never a child.
const NONE: u32 = 0;

impl Tree {
    /// Returns the most memory that a line's tree takes: a node per byte, and 1.5 times that while the list of nodes
    /// grows.
    fn bytes_max(line: &[u8]) -> u64 {
        3 * size_of::<Node>() as u64 * (line.len() as u64 + 2)
    }

    fn count(&mut self, line: &[u8]) -> u64 {
        let root = Node { len: -1, link: BEFORE_EMPTY, suffixes: 0, first_child: NONE, sibling: NONE, byte: 0 };
        self.nodes.clear();
        self.nodes.extend([root, Node { len: 0, ..root }]);
        self.single.fill(NONE);
        let mut longest = EMPTY;
        let mut count = 0;
        for (end, byte) in line.iter().enumerate() {
            longest = self.extend(longest, line, end, *byte);
            count += u64::from(self.nodes[longest as usize].suffixes);
        }
        count
    }

    /// Returns the longest palindrome that ends with `line[end]`, given the one that ends just before it.
    fn extend(&mut self, longest: u32, line: &[u8], end: usize, byte: u8) -> u32 {
        let inner = self.extensible(longest, line, end);
        if let Some(child) = self.child(inner, byte) {
            return child;
        }
        let len = self.nodes[inner as usize].len + 2;
        let link = if len == 1 {
            EMPTY
        } else {
            let inner = self.extensible(self.nodes[inner as usize].link, line, end);
            self.child(inner, byte).unwrap_or(EMPTY)
        };
        let suffixes = self.nodes[link as usize].suffixes + 1;
        let node = self.nodes.len() as u32;
        let first = match inner {
            BEFORE_EMPTY => &mut self.single[usize::from(byte)],
            _ => &mut self.nodes[inner as usize].first_child,
        };
        let sibling = std::mem::replace(first, node);
        self.nodes.push(Node { len, link, suffixes, first_child: NONE, sibling, byte });
        node
    }

    /// Returns the longest of `node` and its palindromic suffixes that has `line[end]` both before and after it.
    fn extensible(&self, mut node: u32, line: &[u8], end: usize) -> u32 {
        loop {
            let Node { len, link, .. } = self.nodes[node as usize];
            // For the node before the empty one this is the byte itself.
            let before = end as i64 - len - 1;
            if before >= 0 && line[before as usize] == line[end] {
                return node;
            }
            node = link;
        }
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let mut child = match node {
            BEFORE_EMPTY => self.single[usize::from(byte)],
            _ => self.nodes[node as usize].first_child,
        };
        while child != NONE && self.nodes[child as usize].byte != byte {
            child = self.nodes[child as usize].sibling;
        }
        (child != NONE).then_some(child)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Algorithm; 4] = [Algorithm::Auto, Algorithm::Brute, Algorithm::Manacher, Algorithm::Tree];

    /// Counts by reading every substring both ways.
    fn oracle(line: &[u8]) -> u64 {
        let substrings = (0..line.len()).flat_map(|start| (start + 1..=line.len()).map(move |end| &line[start..end]));
        substrings.filter(|substring| substring.iter().eq(substring.iter().rev())).count() as u64
    }

    #[test]
    fn lines_that_can_be_counted_by_hand() {
        for (line, expected) in [("", 0), ("a", 1), ("abc", 3), ("aaa", 6), ("abba", 6), ("abacaba", 12), ("aab", 4)] {
            for algorithm in ALL {
                assert_eq!(Palindromes::new(algorithm).in_line(line.as_bytes()), expected, "{line} {algorithm:?}");
            }
        }
        let long = vec![b'a'; 10_000];
        for algorithm in ALL {
            assert_eq!(Palindromes::new(algorithm).in_line(&long), 10_000 * 10_001 / 2, "{algorithm:?}");
        }
    }

    #[test]
    fn a_line_with_many_palindromes_is_not_counted_one_by_one() {
        assert_eq!(from_centres(b"aaaa", 6), Some(10));
        assert_eq!(from_centres(b"aaaa", 5), None);
    }

    proptest! {
        #[test]
        fn all_algorithms_agree_with_every_substring_read_both_ways(
            line in prop_oneof![
                proptest::collection::vec(0u8..2, 0..60),
                proptest::collection::vec(0u8..4, 0..60),
                proptest::collection::vec(any::<u8>(), 0..60),
            ],
        ) {
            let expected = oracle(&line);
            for algorithm in ALL {
                prop_assert_eq!(Palindromes::new(algorithm).in_line(&line), expected, "{:?}", algorithm);
            }
        }
    }
}
