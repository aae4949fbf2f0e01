//! Pairs of programs that disturb each other although their demands meet the target (beyond the paper).
//!
//! A quantum was wrong for a program if its demands met the target and the program still lost clearly more than it
//! loses in the system's order. The blame goes to its pairing with the program that moved most in the same quantum.
//! After two wrong quanta the pair no longer runs together if there is another choice.

use std::collections::{BTreeMap, BTreeSet};

/// The loss beyond that in the system's order that counts as wrong, as a share of the program's speed.
const MARGIN: f64 = 0.2;
/// The number of wrong quanta after which a pair is dropped.
const TIMES: u32 = 2;
/// The number of quanta in the system's order needed to know a program's loss there.
const SAMPLES_MIN: u32 = 5;

/// A program in a quantum of our order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// The number of its build.
    pub build: usize,
    /// The share of its speed that it lost, if known.
    pub loss: Option<f64>,
    /// The bandwidth it used.
    pub used: f64,
}

/// Losses of builds, by number, and the pairs that proved to be wrong.
#[derive(Clone, Debug, Default)]
pub struct Pairings {
    /// The mean loss in the system's order, and the number of quanta.
    usual: BTreeMap<usize, (f64, u32)>,
    wrong: BTreeMap<(usize, usize), u32>,
    dropped: BTreeSet<(usize, usize)>,
}

impl Pairings {
    /// Records the loss of a program in a quantum of the system's order.
    pub fn observe_usual(&mut self, build: usize, loss: f64) {
        let (mean, count) = self.usual.entry(build).or_default();
        *count += 1;
        *mean += (loss - *mean) / f64::from(*count);
    }

    /// Records a quantum of our order whose demands met the target. Returns the pairs that are dropped now.
    pub fn observe_chosen(&mut self, members: &[Member]) -> Vec<(usize, usize)> {
        let mut wrong = BTreeSet::new();
        for (place, member) in members.iter().enumerate() {
            let usual = self.usual.get(&member.build).filter(|(_, count)| *count >= SAMPLES_MIN);
            let is_wrong = member.loss.zip(usual).is_some_and(|(loss, (mean, _))| loss > mean + MARGIN);
            let others = members.iter().enumerate().filter(|(other, _)| *other != place);
            let Some((_, beside)) = others.max_by(|a, b| a.1.used.total_cmp(&b.1.used)).filter(|_| is_wrong) else {
                continue;
            };
            wrong.insert(ordered(member.build, beside.build));
        }
        wrong.retain(|pair| {
            let times = self.wrong.entry(*pair).or_default();
            *times += 1;
            *times >= TIMES && self.dropped.insert(*pair)
        });
        wrong.into_iter().collect()
    }

    /// Drops a pair that an earlier execution found to be wrong.
    pub fn drop_pair(&mut self, one: usize, other: usize) {
        self.dropped.insert(ordered(one, other));
    }

    /// Returns true if the pair must not run together while there is another choice.
    pub fn is_dropped(&self, one: usize, other: usize) -> bool {
        self.dropped.contains(&ordered(one, other))
    }

    /// All dropped pairs.
    pub fn dropped(&self) -> impl Iterator<Item = (usize, usize)> {
        self.dropped.iter().copied()
    }

    /// Returns true if no pair is dropped.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty()
    }
}

fn ordered(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(build: usize, loss: f64, used: f64) -> Member {
        Member { build, loss: Some(loss), used }
    }

    fn pairings() -> Pairings {
        let mut pairings = Pairings::default();
        for build in 0..3 {
            (0..5).for_each(|_| pairings.observe_usual(build, 0.1));
        }
        pairings
    }

    #[test]
    fn a_pairing_found_wrong_twice_is_dropped() {
        let mut pairings = pairings();
        let quantum = [member(2, 0.4, 10.0), member(0, 0.1, 50.0), member(1, 0.1, 5.0)];
        assert_eq!(pairings.observe_chosen(&quantum), []);
        assert!(!pairings.is_dropped(0, 2));
        assert_eq!(pairings.observe_chosen(&quantum), [(0, 2)]);
        assert!(pairings.is_dropped(0, 2) && pairings.is_dropped(2, 0) && !pairings.is_dropped(1, 2));
        assert_eq!(pairings.observe_chosen(&quantum), [], "it is told once");
    }

    #[test]
    fn a_pairing_that_is_no_worse_than_the_system_is_kept() {
        let mut pairings = pairings();
        for _ in 0..50 {
            assert_eq!(pairings.observe_chosen(&[member(0, 0.25, 50.0), member(1, 0.2, 50.0)]), []);
        }
    }

    #[test]
    fn no_pairing_is_wrong_while_the_usual_loss_is_unknown() {
        let mut pairings = Pairings::default();
        pairings.observe_usual(0, 0.0);
        for _ in 0..50 {
            assert_eq!(pairings.observe_chosen(&[member(0, 0.9, 50.0), member(1, 0.9, 50.0)]), []);
        }
    }
}
