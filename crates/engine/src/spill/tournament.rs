//! A tournament of sorted streams, which tells which of them has the next pair.
//!
//! Each inner node of a tree of streams stores the loser of its match, so the next pair costs one comparison per level
//! on the way from its leaf to the root. Most comparisons look at two numbers only, the prefixes of the pairs. The
//! winner is unpredictable, so it is selected without a branch.

use std::hint::select_unpredictable;

/// Sorted streams, by their number.
pub(crate) trait Streams {
    /// Returns the prefix of a stream's next pair; the largest number if the stream has ended.
    fn prefix(&self, stream: usize) -> u64;

    /// Returns whether the next pair of `a` comes before that of `b`, given that their prefixes are equal. A stream
    /// that has ended comes after all others.
    fn comes_before(&self, a: usize, b: usize) -> bool;
}

/// A stream and its prefix.
#[derive(Clone, Copy, Default)]
struct Player {
    prefix: u64,
    stream: u32,
}

impl Player {
    #[inline(always)]
    fn of(streams: &impl Streams, stream: usize) -> Player {
        Player { prefix: streams.prefix(stream), stream: stream as u32 }
    }

    #[inline(always)]
    fn beats(self, other: Player, streams: &impl Streams) -> bool {
        match self.prefix == other.prefix {
            true => streams.comes_before(self.stream as usize, other.stream as usize),
            false => self.prefix < other.prefix,
        }
    }
}

/// The tree of matches; by default one without streams.
#[derive(Default)]
pub(crate) struct Tournament {
    /// The first is the winner. Node n has the children 2n and 2n + 1, and stream s is node s + the number of streams.
    losers: Vec<Player>,
}

impl Tournament {
    /// Plays all matches between `count` streams.
    pub fn new(count: usize, streams: &impl Streams) -> Tournament {
        let mut tournament = Tournament { losers: vec![Player::default(); count] };
        if count > 0 {
            tournament.losers[0] = tournament.play(1, streams);
        }
        tournament
    }

    /// Returns the winner below `node`, and records the losers on the way.
    fn play(&mut self, node: usize, streams: &impl Streams) -> Player {
        let count = self.losers.len();
        if node >= count {
            return Player::of(streams, node - count);
        }
        let (left, right) = (self.play(node * 2, streams), self.play(node * 2 + 1, streams));
        let (winner, loser) = if left.beats(right, streams) { (left, right) } else { (right, left) };
        self.losers[node] = loser;
        winner
    }

    /// Returns the stream with the next pair; one that has ended, if all have. `None` if there are no streams.
    #[inline(always)]
    pub fn winner(&self) -> Option<usize> {
        self.losers.first().map(|winner| winner.stream as usize)
    }

    /// Plays the matches of the winner again, whose next pair is another one now.
    #[inline(always)]
    pub fn play_again(&mut self, streams: &impl Streams) {
        let Some(stream) = self.winner() else { return };
        let mut winner = Player::of(streams, stream);
        let mut node = (stream + self.losers.len()) / 2;
        while node > 0 {
            let other = self.losers[node];
            let wins = other.beats(winner, streams);
            let choose = |if_wins: Player, if_not: Player| Player {
                prefix: select_unpredictable(wins, if_wins.prefix, if_not.prefix),
                stream: select_unpredictable(wins, if_wins.stream, if_not.stream),
            };
            self.losers[node] = choose(winner, other);
            winner = choose(other, winner);
            node /= 2;
        }
        self.losers[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Stacks of numbers whose prefixes are their tens.
    struct Stacks(Vec<Vec<u64>>);

    impl Streams for Stacks {
        fn prefix(&self, stream: usize) -> u64 {
            self.0[stream].last().map_or(u64::MAX, |number| number / 10)
        }

        fn comes_before(&self, a: usize, b: usize) -> bool {
            match (self.0[a].last(), self.0[b].last()) {
                (Some(a), Some(b)) => a < b,
                (number, _) => number.is_some(),
            }
        }
    }

    proptest! {
        #[test]
        fn the_winners_are_in_order(mut stacks in prop::collection::vec(prop::collection::vec(0u64..100, 0..20), 0..9)) {
            stacks.iter_mut().for_each(|stack| stack.sort_by(|a, b| b.cmp(a)));
            let mut expected = stacks.concat();
            expected.sort();
            let mut stacks = Stacks(stacks);
            let mut tournament = Tournament::new(stacks.0.len(), &stacks);
            let mut found = Vec::new();
            while let Some(number) = tournament.winner().and_then(|winner| stacks.0[winner].pop()) {
                found.push(number);
                tournament.play_again(&stacks);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
