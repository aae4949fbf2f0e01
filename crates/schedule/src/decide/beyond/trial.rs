//! Whose turn it is (beyond the paper): the order that took less processor time, and in one of eight executions the
//! other one.
//!
//! ```text
//!                 a gain was measured?      rare order        usual order
//!                 no, or not yet            the scheduler's   the system's
//!                 yes                       the system's      the scheduler's
//! ```
//!
//! The rare order has its turn while fewer than one of eight executions had it. So there is something to measure, and
//! the cost of a choice that gains nothing is divided by eight. A turn holds for a while, because an execution in a
//! mixture of both orders tells nothing.

use crate::know::knowledge::Tally;

/// The rule by which both orders are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialRule {
    /// The rare order has one of this many executions.
    pub one_in: u64,
    /// The time that a turn holds.
    pub turn_us: f64,
    /// The length of a quantum in the system's order, in usual quanta. Longer quanta cost less.
    pub observed_quanta: f64,
}

impl Default for TrialRule {
    /// One in eight, for a minute. Quanta that are only observed take 400 ms.
    fn default() -> TrialRule {
        TrialRule { one_in: 8, turn_us: 60e6, observed_quanta: 4.0 }
    }
}

impl TrialRule {
    /// Returns whether it is the turn of the scheduler's order.
    ///
    /// ```
    /// use gristmill_schedule::{Tally, TrialRule};
    ///
    /// let rule = TrialRule::default();
    /// let after = |all, tried| rule.is_ours(&Tally { programs: 1, all, tried, has_gained: false });
    /// assert_eq!([after(6, 0), after(7, 0), after(8, 1), after(15, 1)], [false, true, false, true]);
    /// ```
    pub fn is_ours(&self, tally: &Tally) -> bool {
        let rare = if tally.has_gained { tally.all.saturating_sub(tally.tried) } else { tally.tried };
        let is_rare = tally.programs > 0 && self.one_in * (rare + tally.programs) <= tally.all + tally.programs;
        tally.has_gained != is_rare
    }
}

/// A turn, and what is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) is_ours: bool,
    pub(crate) left_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of executions, one after the other, in which the scheduler's order has its turn.
    fn share(has_gained: bool) -> f64 {
        let mut tally = Tally { has_gained, programs: 1, ..Tally::default() };
        for _ in 0..800 {
            tally.tried += u64::from(TrialRule::default().is_ours(&tally));
            tally.all += 1;
        }
        tally.tried as f64 / tally.all as f64
    }

    #[test]
    fn the_order_that_is_not_known_to_be_better_has_one_of_eight_executions() {
        assert_eq!([share(false), share(true)], [0.125, 0.875]);
    }

    #[test]
    fn several_programs_that_run_together_are_tried_together() {
        let mut tally = Tally { programs: 4, ..Tally::default() };
        let turns = (0..40).map(|_| {
            let ours = TrialRule::default().is_ours(&tally);
            tally.tried += if ours { 4 } else { 0 };
            tally.all += 4;
            ours
        });
        let turns: Vec<bool> = turns.collect();
        assert_eq!(turns.iter().filter(|ours| **ours).count(), 5);
        assert_eq!(turns.iter().position(|ours| *ours), Some(7));
    }
}
