//! The jobs of this room: a search of states in steps, and a word count in one.

use std::ops::Range;

/// A job in steps. Its pairs are a key, which is not 0, and a value.
pub trait SteppedJob: Sync {
    /// The number of steps.
    fn steps(&self) -> usize;
    /// The pairs with which the search begins.
    fn start(&self) -> Vec<[u64; 2]>;
    /// Makes the pairs of a step from a worker's part of those of the step before.
    fn map(&self, worker: usize, workers: usize, list: &[u64], emit: &mut impl FnMut(u64, u64));
    /// Joins two values of a key.
    fn combine(&self, a: u64, b: u64) -> u64;
}

/// Counts the states of a sliding-tile puzzle at each distance from the ordered one, as MR-Search does.
///
/// A state has four bits for each square; 0 is the blank. Its value has a bit for each move that leads back to a state
/// from which it was made. Such moves are not made again, so no state of an earlier step is.
#[derive(Clone, Debug)]
pub struct Search {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

/// States at the depths 0, 1, 2 ... of the 8-puzzle from a corner, of which there are 181,440 in all (OEIS A089473).
pub const STATES_OF_8: [u64; 32] = [
    1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485, 5638, 9529, 10878, 16993, 17110,
    23952, 20224, 24047, 15578, 14560, 6274, 3910, 760, 221, 2,
];
/// The same of the 15-puzzle, as far as it is searched here (OEIS A090164).
pub const STATES_OF_15: [u64; 23] = [
    1, 2, 4, 10, 24, 54, 107, 212, 446, 946, 1948, 3938, 7808, 15544, 30821, 60842, 119_000, 231_844, 447_342, 859_744,
    1_637_383, 3_098_270, 5_802_411,
];

impl SteppedJob for Search {
    fn steps(&self) -> usize {
        self.depth
    }

    fn start(&self) -> Vec<[u64; 2]> {
        let last = (self.rows * self.columns - 1) as u64;
        vec![[(0..last).map(|square| (square + 1) << (4 * square)).sum(), 0]]
    }

    fn map(&self, _worker: usize, _workers: usize, list: &[u64], emit: &mut impl FnMut(u64, u64)) {
        let (rows, columns) = (self.rows, self.columns);
        for [state, back] in list.as_chunks::<2>().0 {
            let blank = (0..rows * columns).find(|square| state >> (4 * square) & 15 == 0).expect("there is a blank");
            let (row, column) = (blank / columns, blank % columns);
            // Up and down, left and right: the lowest bit turns a move round.
            let moves = [
                (row > 0, blank.wrapping_sub(columns)),
                (row + 1 < rows, blank + columns),
                (column > 0, blank.wrapping_sub(1)),
                (column + 1 < columns, blank + 1),
            ];
            for (number, (_, square)) in moves.into_iter().enumerate().filter(|(_, (is_there, _))| *is_there) {
                if back >> number & 1 == 0 {
                    let tile = state >> (4 * square) & 15;
                    emit(state ^ tile << (4 * square) ^ tile << (4 * blank), 1 << (number ^ 1));
                }
            }
        }
    }

    fn combine(&self, a: u64, b: u64) -> u64 {
        a | b
    }
}

/// Counts words of up to eight letters: each is sent, and counted where it arrives.
#[derive(Clone, Debug)]
pub struct WordCount {
    pub text: Vec<u8>,
}

impl WordCount {
    /// Returns the worker's part of the text. A word belongs to the part that its first letter is in.
    fn part(&self, worker: usize, workers: usize) -> Range<usize> {
        let border = |number: usize| {
            let from = self.text.len() * number / workers;
            let is_inside = |at: usize| at > 0 && self.text[at - 1].is_ascii_alphabetic();
            (from..self.text.len()).find(|at| !is_inside(*at)).unwrap_or(self.text.len())
        };
        border(worker)..border(worker + 1)
    }
}

impl SteppedJob for WordCount {
    fn steps(&self) -> usize {
        1
    }

    fn start(&self) -> Vec<[u64; 2]> {
        Vec::new()
    }

    fn map(&self, worker: usize, workers: usize, _list: &[u64], emit: &mut impl FnMut(u64, u64)) {
        let part = &self.text[self.part(worker, workers)];
        for word in part.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
            // Longer words are counted together with those that begin alike.
            let mut letters = [0; 8];
            let end = word.len().min(8);
            letters[..end].copy_from_slice(&word[..end]);
            emit(u64::from_le_bytes(letters), 1);
        }
    }

    fn combine(&self, a: u64, b: u64) -> u64 {
        a + b
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// A search with a set of all states, on a board of tiles.
    #[test]
    fn the_known_numbers_of_states_are_right() {
        let (mut seen, mut depth) = (BTreeSet::new(), vec![[1_u8, 2, 3, 4, 5, 6, 7, 8, 0]]);
        seen.insert(depth[0]);
        let mut counts = Vec::new();
        while !depth.is_empty() {
            counts.push(depth.len() as u64);
            let mut next = Vec::new();
            for tiles in depth {
                let blank = tiles.iter().position(|tile| *tile == 0).expect("a blank");
                for other in 0..9_usize {
                    if (blank / 3).abs_diff(other / 3) + (blank % 3).abs_diff(other % 3) == 1 {
                        let mut moved = tiles;
                        moved.swap(blank, other);
                        if seen.insert(moved) {
                            next.push(moved);
                        }
                    }
                }
            }
            depth = next;
        }
        assert_eq!(counts, STATES_OF_8);
        assert_eq!(counts.iter().sum::<u64>(), 181_440);
    }

    #[test]
    fn parts_of_a_text_have_each_word_once() {
        let text = b"to be, or not to be - that is the question".to_vec();
        let expected = BTreeMap::from([(*b"to\0\0\0\0\0\0", 2_u64), (*b"be\0\0\0\0\0\0", 2), (*b"question", 1)]);
        let job = WordCount { text };
        for workers in 1..20 {
            let mut counts = BTreeMap::new();
            let mut emit = |key: u64, one| *counts.entry(key.to_le_bytes()).or_insert(0) += one;
            (0..workers).for_each(|worker| job.map(worker, workers, &[], &mut emit));
            assert_eq!((counts.len(), counts.values().sum::<u64>()), (8, 10), "{workers}");
            assert!(expected.iter().all(|(word, count)| counts[word] == *count), "{workers}");
        }
    }
}
