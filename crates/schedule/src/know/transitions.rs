//! Transitions between phases: a first-order Markov predictor of one execution (the paper's section 3.4).

use std::collections::BTreeMap;

/// The sum of a phase's counts from which all of them are halved, so that a program that changes is followed.
const COUNTS_MAX: u32 = 1000;

/// How often each phase was followed by each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// By previous phase: the phases that followed, each with a count.
    counts: BTreeMap<usize, BTreeMap<usize, u32>>,
}

impl Followed {
    /// Adds how often one phase followed another.
    pub fn add(&mut self, from: usize, to: usize, count: u32) {
        let followed = self.counts.entry(from).or_default();
        let sum = followed.entry(to).or_default();
        *sum = sum.saturating_add(count);
        if followed.values().fold(0, |sum: u32, count| sum.saturating_add(*count)) > COUNTS_MAX {
            followed.values_mut().for_each(|count| *count = count.div_ceil(2));
        }
    }

    /// Adds all counts of an execution.
    pub fn take_in(&mut self, other: &Followed) {
        other.iter().for_each(|(from, to, count)| self.add(from, to, count));
    }

    /// Returns the phase that most often followed this one; `None` if none did. On a tie, the phase itself wins, then
    /// the first.
    pub fn next(&self, from: usize) -> Option<usize> {
        let followed = self.counts.get(&from)?;
        let likely = followed.iter().max_by_key(|(to, count)| (**count, **to == from, std::cmp::Reverse(**to)));
        likely.map(|(to, _)| *to)
    }

    /// Returns each pair of phases with its count.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        self.counts.iter().flat_map(|(from, followed)| followed.iter().map(|(to, count)| (*from, *to, *count)))
    }
}

/// The transitions of one execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    current: Option<usize>,
    followed: Followed,
}

impl Transitions {
    /// Records the phase of the quantum that has ended.
    pub fn observe(&mut self, phase: usize) {
        if let Some(left) = self.current.replace(phase) {
            self.followed.add(left, phase, 1);
        }
    }

    /// The phase of the last quantum; `None` before the first one.
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// The transitions of this execution.
    pub fn followed(&self) -> &Followed {
        &self.followed
    }

    /// Returns the phase that most often followed the current one. If the current one was never left before, it is
    /// returned itself. `None` before the first quantum.
    pub fn next(&self) -> Option<usize> {
        let current = self.current?;
        Some(self.followed.next(current).unwrap_or(current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(phases: &[usize]) -> Option<usize> {
        let mut transitions = Transitions::default();
        phases.iter().for_each(|phase| transitions.observe(*phase));
        transitions.next()
    }

    #[test]
    fn without_history_the_next_phase_is_the_current_one() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[3]), Some(3));
        assert_eq!(after(&[3, 4]), Some(4));
    }

    #[test]
    fn the_markov_predictor_returns_the_most_frequent_successor() {
        assert_eq!(after(&[0, 1, 0, 2, 0, 1, 0]), Some(1));
        assert_eq!(after(&[0, 1, 2, 0, 1, 2, 0, 1]), Some(2));
    }

    #[test]
    fn only_the_current_phase_decides() {
        // Regardless of what came before the 5, a 7 followed it twice and a 6 once.
        assert_eq!(after(&[1, 5, 7, 2, 5, 7, 3, 5, 6, 1, 5]), Some(7));
    }

    #[test]
    fn counts_of_many_executions_are_halved_so_that_a_new_habit_wins() {
        let mut followed = Followed::default();
        followed.add(0, 1, COUNTS_MAX);
        (0..10).for_each(|_| followed.add(0, 2, 1));
        assert_eq!(followed.next(0), Some(1));
        let mut execution = Followed::default();
        execution.add(0, 2, COUNTS_MAX / 2);
        (0..4).for_each(|_| followed.take_in(&execution));
        assert_eq!((followed.next(0), followed.next(1)), (Some(2), None));
    }
}
