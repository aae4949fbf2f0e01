//! Transitions between phases: a first-order Markov predictor of one execution (the paper's section 3.4).

use std::collections::BTreeMap;

/// The number of times that one phase followed another in this execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    current: Option<usize>,
    /// By previous phase: the phases that followed, each with a count.
    followed: BTreeMap<usize, BTreeMap<usize, u32>>,
}

impl Transitions {
    /// Records the phase of the quantum that has ended.
    pub fn observe(&mut self, phase: usize) {
        if let Some(left) = self.current.replace(phase) {
            *self.followed.entry(left).or_default().entry(phase).or_default() += 1;
        }
    }

    /// Returns the phase that most often followed the current one. If the current one was never left before, it is
    /// returned itself. `None` before the first quantum.
    pub fn next(&self) -> Option<usize> {
        let current = self.current?;
        let known = self.followed.get(&current);
        // On a tie the current phase wins, then the first.
        let likely = known.and_then(|known| {
            known.iter().max_by_key(|(phase, count)| (**count, **phase == current, std::cmp::Reverse(**phase)))
        });
        Some(likely.map_or(current, |(phase, _)| *phase))
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
}
