//! The 15-puzzle by hand, breadth first, on sorted states; each new depth drops the states of the depth before the
//! last. Prints `depth\tstates`.

use baselines::{arguments, fail};
use rayon::prelude::*;

/// Sixteen tiles of four bits, the first square in the lowest bits; 0 is the blank.
type State = u64;

/// The tiles in order, the blank last.
const START: State = 0x0fed_cba9_8765_4321;

/// Returns the states that one move leads to.
fn moves(state: State) -> impl Iterator<Item = State> {
    let nibbles = state | state >> 1 | state >> 2 | state >> 3;
    let blank = (!nibbles & 0x1111_1111_1111_1111).trailing_zeros() / 4;
    let (row, column) = (blank / 4, blank % 4);
    let squares = [(row > 0, -4), (row < 3, 4), (column > 0, -1), (column < 3, 1)];
    squares.into_iter().filter(|(is_there, _)| *is_there).map(move |(_, way)| {
        let square = blank.wrapping_add_signed(way);
        let tile = state >> (4 * square) & 15;
        state ^ tile << (4 * square) ^ tile << (4 * blank)
    })
}

fn part(state: State, parts: usize) -> usize {
    (state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize * parts >> 32
}

fn main() {
    let ([], [depth, threads]) =
        arguments("tile_search_hand [--depth N] [--threads N]", [("--depth", "20"), ("--threads", "2")]);
    let number = |text: String, name| text.parse().unwrap_or_else(|_| fail(format!("{name} needs a number")));
    let (depth, threads): (usize, usize) = (number(depth, "--depth"), number(threads, "--threads"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("no pool exists yet");
    let parts = 4 * threads;
    let (mut before, mut last) = (vec![Vec::new(); parts], vec![Vec::new(); parts]);
    last[part(START, parts)].push(START);
    println!("0\t1");
    for depth in 1..=depth {
        let sent: Vec<Vec<Vec<State>>> = last
            .par_iter()
            .map(|states| {
                let mut to = vec![Vec::new(); parts];
                states.iter().flat_map(|state| moves(*state)).for_each(|state| to[part(state, parts)].push(state));
                to
            })
            .collect();
        // A move changes the colour of the blank's square, so no state of the last depth can reappear.
        let next: Vec<Vec<State>> = (0..parts)
            .into_par_iter()
            .map(|part| {
                let mut states: Vec<State> = sent.iter().flat_map(|to| &to[part]).copied().collect();
                states.sort_unstable();
                states.dedup();
                let mut known = before[part].iter().peekable();
                states.retain(|state| {
                    while known.next_if(|known| *known < state).is_some() {}
                    known.peek() != Some(&state)
                });
                states
            })
            .collect();
        println!("{depth}\t{}", next.iter().map(Vec::len).sum::<usize>());
        (before, last) = (last, next);
    }
}
