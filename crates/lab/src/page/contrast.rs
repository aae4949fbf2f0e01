//! How one time compares with another.

use gristmill_report::tally::Tally;

/// How one time compares with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contrast {
    Faster,
    Level,
    Slower,
}

impl Contrast {
    /// Compares `time` with `other`: level are times whose runs overlap, or whose medians differ by up to 1 %.
    pub fn of(time: &Tally, other: &Tally) -> Contrast {
        let is_less = time.median < other.median;
        let (fast, slow) = if is_less { (time, other) } else { (other, time) };
        let is_level = slow.least <= fast.most || slow.median <= 1.01 * fast.median;
        match (is_level, is_less) {
            (true, _) => Contrast::Level,
            (false, true) => Contrast::Faster,
            (false, false) => Contrast::Slower,
        }
    }

    /// Returns whether this is what a paper claims. Level runs do not contradict a claim that one is faster, because
    /// more runs might tell them apart.
    pub fn holds(self, claimed: Contrast) -> Option<bool> {
        (self == claimed).then_some(true).or((self != Contrast::Level).then_some(false))
    }

    /// Returns the end of a sentence that gives the quotient of the two times: it says if they are level.
    pub fn caveat(self) -> &'static str {
        if self == Contrast::Level { ", which is level" } else { "" }
    }
}

/// Returns whether all of these hold: not if one does not, and else unknown if one is.
pub fn all_of(holds: &[Option<bool>]) -> Option<bool> {
    match holds.contains(&Some(false)) {
        true => Some(false),
        false => (!holds.contains(&None)).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_hold_decides() {
        assert_eq!([all_of(&[Some(true), None, Some(false)]), all_of(&[Some(true), None])], [Some(false), None]);
        assert_eq!(all_of(&[Some(true), Some(true)]), Some(true));
    }

    #[test]
    fn times_whose_runs_overlap_are_level() {
        let [a, b, c] = [[1.0, 1.1, 1.2], [1.2, 1.26, 1.3], [2.0, 2.1, 2.2]].map(|times| Tally::of(&times));
        assert_eq!(Contrast::of(&a, &b), Contrast::Level);
        assert_eq!([Contrast::of(&a, &c), Contrast::of(&c, &a)], [Contrast::Faster, Contrast::Slower]);
    }

    #[test]
    fn level_times_contradict_no_difference() {
        use Contrast::{Faster, Level, Slower};
        assert_eq!([Faster, Level, Slower].map(|found| found.holds(Faster)), [Some(true), None, Some(false)]);
        assert_eq!([Faster, Level, Slower].map(|found| found.holds(Level)), [Some(false), Some(true), Some(false)]);
    }
}
