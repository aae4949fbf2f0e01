//! Sliding-tile puzzles: counts the states at each distance from the start, by breadth-first search.
//!
//! One step of the job expands one depth. Its pairs are the states of that depth, in the region, and map makes the
//! states of the next depth from them. States of the previous depth must not be made again, but they are not kept for
//! comparison. Instead, each state carries the moves that lead back to the states it was made from (the operator bits
//! of Korf's frontier search, 1999), and map does not make these moves. If two states make the same child, combining
//! joins their bits. This is enough because each move changes the colour of the blank's square: a neighbour of a
//! state of depth d has depth d - 1 or d + 1, never d, and each neighbour of depth d - 1 has made the state and left
//! its bit.
//!
//! ```text
//!  state:  | tile on square 0, 4 bits | tile on square 1 | ...      0 is the blank
//! ```

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use gristmill::{Chunk, Control, Emit, Input, Job, MapReduce, Next, Pairs, ProgramError, Records, Step, Summary};

use crate::error::{Error, Result};

/// The number of squares that fit in 64 bits.
const SQUARES_MAX: usize = 16;
/// The moves of the blank: up, down, left, right. Bit 0 of the index flips a move into its reverse.
const MOVES: usize = 4;
/// The entry for a direction without a square.
const NOWHERE: u8 = u8::MAX;

/// A puzzle, its start, and the extent of the search.
///
/// ```
/// use std::ops::ControlFlow;
/// use gristmill::Isolation;
/// use gristmill_apps::{Error, TileSearch};
///
/// let mut counts = Vec::new();
/// let search = TileSearch { goal: Some(vec![3, 1, 2, 0]), ..TileSearch::new(2, 2) };
/// let run = |job: gristmill::Job<'_, _>, state: &[u8], control: &mut gristmill::Control<'_, _>| {
///     // Doctests share a process, so the workers are threads.
///     job.workers(2).isolation(Isolation::Thread).iterate(state, control).map_err(Error::from)
/// };
/// let (found, _) = search.run(run, |_, states| {
///     counts.push(states);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(counts, [1, 2, 2, 2, 2]);
/// assert_eq!(found.goal_depth, Some(4));
/// # Ok::<(), gristmill_apps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TileSearch {
    /// The number of rows of the board.
    pub rows: usize,
    /// The number of squares in a row.
    pub columns: usize,
    /// The tiles from left to right and from top to bottom, 0 for the blank.
    pub start: Vec<u8>,
    /// Ends the search when this state is found.
    pub goal: Option<Vec<u8>>,
    /// The maximum depth.
    pub depth_max: Option<u32>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The depth of the goal, if one was given and found.
    pub goal_depth: Option<u32>,
    /// The search reached the deepest state.
    pub complete: bool,
}

impl TileSearch {
    /// Searches all states that can be reached from the ordered tiles with the blank last.
    pub fn new(rows: usize, columns: usize) -> TileSearch {
        let squares = rows.saturating_mul(columns).min(SQUARES_MAX) as u8;
        TileSearch { rows, columns, start: (1..squares).chain([0]).collect(), goal: None, depth_max: None }
    }

    /// Runs the search; `run` runs the job in steps ([`Job::iterate`]). `visit` is called with each depth and its
    /// number of states until it breaks.
    ///
    /// # Errors
    /// A board that is too small or too large; tiles that are not the numbers below the number of squares; a goal
    /// that cannot be reached; an error of `run`.
    pub fn run<E: From<Error>>(
        &self,
        run: impl FnOnce(Job<'_, Board>, &[u8], &mut Control<'_, Board>) -> std::result::Result<Summary, E>,
        mut visit: impl FnMut(u32, u64) -> ControlFlow<()>,
    ) -> std::result::Result<(Found, Summary), E> {
        let board = Board::new(self.rows, self.columns)?;
        let start = board.state("start", &self.start)?;
        let goal = self.goal.as_ref().map(|goal| board.state("goal", goal)).transpose()?;
        if goal.is_some_and(|goal| !board.connects(start, goal)) {
            return Err(Error::Question(
                "no moves lead from the start to the goal: from any arrangement, half of all others are out of reach"
                    .into(),
            )
            .into());
        }
        let mut found = Found { goal_depth: None, complete: false };
        let mut control = |step: &mut Step<'_, Board>| {
            let (depth, states) = (step.number(), step.pairs());
            if states == 0 {
                found.complete = true;
                return Next::Stop;
            }
            if goal.is_some_and(|goal| step.get(goal).is_some()) {
                found.goal_depth = Some(depth);
            }
            let ends = found.goal_depth.is_some() || self.depth_max == Some(depth);
            if visit(depth, states).is_break() || ends { Next::Stop } else { Next::Pairs }
        };
        let input = Input::bytes("the start", &start.to_le_bytes()).map_err(Error::from)?;
        let job = Job::new(&board, input).records(Records::Fixed(8));
        let summary = run(job, &[], &mut control)?;
        Ok((found, summary))
    }
}

/// The board, with the moves of the blank.
pub struct Board {
    rows: usize,
    columns: usize,
    /// The neighbour of each square in each direction, or `NOWHERE`.
    beside: [[u8; MOVES]; SQUARES_MAX],
}

impl Board {
    fn new(rows: usize, columns: usize) -> Result<Board> {
        if !(2..=SQUARES_MAX).contains(&rows.saturating_mul(columns)) {
            let what = format!("a board of {rows} x {columns} squares was asked for; there can be 2 to {SQUARES_MAX}");
            return Err(Error::Question(what));
        }
        let mut beside = [[NOWHERE; MOVES]; SQUARES_MAX];
        for (square, beside) in beside.iter_mut().enumerate().take(rows * columns) {
            let (row, column) = (square / columns, square % columns);
            let squares = [
                (row > 0).then(|| square - columns),
                (row + 1 < rows).then(|| square + columns),
                (column > 0).then(|| square - 1),
                (column + 1 < columns).then(|| square + 1),
            ];
            *beside = squares.map(|square| square.map_or(NOWHERE, |square| square as u8));
        }
        Ok(Board { rows, columns, beside })
    }

    fn squares(&self) -> usize {
        self.rows * self.columns
    }

    /// Encodes the tiles as a state.
    fn state(&self, name: &str, tiles: &[u8]) -> Result<u64> {
        let squares = self.squares();
        let different: BTreeSet<u8> = tiles.iter().copied().filter(|tile| usize::from(*tile) < squares).collect();
        if tiles.len() != squares || different.len() != squares {
            let listed: Vec<String> = tiles.iter().map(u8::to_string).collect();
            return Err(Error::Question(format!(
                "the {name} is {}; it needs each of the numbers 0 to {} once, 0 for the blank",
                listed.join(","),
                squares - 1
            )));
        }
        Ok(tiles.iter().rev().fold(0, |state, tile| state << 4 | u64::from(*tile)))
    }

    fn tiles(&self, state: u64) -> Vec<usize> {
        (0..self.squares()).map(|square| (state >> (4 * square) & 15) as usize).collect()
    }

    /// Returns true if moves lead from one state to the other. Each move is one transposition and one step of the
    /// blank, so both counts have the same parity; on a board of one row the tiles keep their order.
    fn connects(&self, from: u64, to: u64) -> bool {
        let (from, to) = (self.tiles(from), self.tiles(to));
        if self.rows == 1 || self.columns == 1 {
            let order = |tiles: &[usize]| tiles.iter().copied().filter(|tile| *tile != 0).collect::<Vec<_>>();
            return order(&from) == order(&to);
        }
        let place = |tiles: &[usize], tile: usize| tiles.iter().position(|other| *other == tile).unwrap_or_default();
        let (a, b) = (place(&from, 0), place(&to, 0));
        let steps = (a / self.columns).abs_diff(b / self.columns) + (a % self.columns).abs_diff(b % self.columns);
        // The permutation of squares that moves each tile to its target; its cycles give the number of
        // transpositions.
        let goes: Vec<usize> = from.iter().map(|tile| place(&to, *tile)).collect();
        let mut seen = vec![false; goes.len()];
        let mut transpositions = 0;
        for first in 0..goes.len() {
            let mut at = first;
            while !std::mem::replace(&mut seen[at], true) {
                at = goes[at];
                transpositions += usize::from(!seen[at]);
            }
        }
        transpositions % 2 == steps % 2
    }

    /// Returns the blank's square: the one whose four bits are all 0.
    #[inline(always)]
    fn blank(&self, state: u64) -> usize {
        let any = state | state >> 1 | state >> 2 | state >> 3;
        (!any & 0x1111_1111_1111_1111).trailing_zeros() as usize / 4
    }
}

impl MapReduce for Board {
    /// The state.
    type Key = u64;
    /// The moves of the blank that lead back, one bit each.
    type Value = u8;

    fn combiner(&self) -> Option<impl Fn(u8, u8) -> u8> {
        Some(|a, b| a | b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u8>) -> Result<(), ProgramError> {
        chunk.bytes().as_chunks::<8>().0.iter().for_each(|state| out.emit(u64::from_le_bytes(*state), 0));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, u64, u8>, out: &mut impl Emit<u64, u8>) -> Result<(), ProgramError> {
        for (state, back) in pairs.iter() {
            let blank = self.blank(state);
            for (direction, square) in self.beside[blank].into_iter().enumerate() {
                if square != NOWHERE && back >> direction & 1 == 0 {
                    let tile = state >> (4 * square) & 15;
                    let moved = state ^ tile << (4 * square) ^ tile << (4 * blank);
                    out.emit(moved, 1 << (direction ^ 1));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(rows: usize, columns: usize) -> Board {
        Board::new(rows, columns).expect("a board")
    }

    #[test]
    fn the_blank_is_found_on_every_square() {
        for (rows, columns) in [(4, 4), (3, 3), (2, 5), (1, 2)] {
            let board = board(rows, columns);
            for square in 0..rows * columns {
                let mut tiles: Vec<u8> = (1..(rows * columns) as u8).collect();
                tiles.insert(square, 0);
                assert_eq!(board.blank(board.state("start", &tiles).expect("tiles")), square, "{rows} x {columns}");
            }
        }
    }

    #[test]
    fn connected_states_are_exactly_the_reachable_ones() {
        // Compares every arrangement of a board of two by three with a search that uses a set.
        let board = board(2, 3);
        let start = board.state("start", &[1, 2, 3, 4, 5, 0]).expect("tiles");
        let (mut reached, mut next) = (BTreeSet::from([start]), vec![start]);
        while let Some(state) = next.pop() {
            let blank = board.blank(state);
            for square in board.beside[blank].into_iter().filter(|square| *square != NOWHERE) {
                let tile = state >> (4 * square) & 15;
                let moved = state ^ tile << (4 * square) ^ tile << (4 * blank);
                if reached.insert(moved) {
                    next.push(moved);
                }
            }
        }
        assert_eq!(reached.len(), 360);
        let mut connected = 0;
        for number in 0..6u64.pow(6) {
            let tiles: Vec<u8> = (0..6).map(|square| (number / 6u64.pow(square) % 6) as u8).collect();
            if let Ok(state) = board.state("goal", &tiles) {
                assert_eq!(board.connects(start, state), reached.contains(&state), "{tiles:?}");
                connected += 1;
            }
        }
        assert_eq!(connected, 720);
    }

    #[test]
    fn on_one_row_the_tiles_keep_their_order() {
        let board = board(1, 4);
        let state = |tiles: &[u8]| board.state("goal", tiles).expect("tiles");
        assert!(board.connects(state(&[1, 2, 3, 0]), state(&[1, 0, 2, 3])));
        assert!(!board.connects(state(&[1, 2, 3, 0]), state(&[2, 3, 1, 0])));
    }
}
