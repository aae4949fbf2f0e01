//! When a verdict is given, and by which comparison of medians.

use gristmill_counters::load::Load;
use gristmill_report::tally::Tally;

use crate::page::{Judgement, ROUNDS_MIN, under};

/// The share of the time below which nothing is said about what is varied.
pub const SHARE_MIN: f64 = 0.01;

/// Returns the verdict of `decide`, if there were enough rounds and no other programs.
pub fn judged(rounds: u32, load: Option<Load>, decide: impl FnOnce() -> Judgement) -> Judgement {
    if (rounds as usize) < ROUNDS_MIN {
        return Judgement::Undecided(format!("{rounds} of the {ROUNDS_MIN} rounds that a verdict takes"));
    }
    match load.filter(Load::disturbs) {
        Some(load) => under(load),
        None => decide(),
    }
}

/// The part of a claim that is about one application.
pub struct Claim {
    pub application: &'static str,
    /// Whether it holds; `None` if that cannot be said.
    pub holds: Option<bool>,
    /// The finding, or the reason why nothing can be said.
    pub found: String,
}

/// Returns the verdict of a claim about several applications: it agrees if each part holds.
pub fn all_hold(parts: &[Claim]) -> Judgement {
    let of_kind = |holds: Option<bool>| {
        let chosen = parts.iter().filter(|part| part.holds == holds);
        chosen.map(|part| format!("{}: {}", part.application, part.found)).collect::<Vec<_>>().join("; ")
    };
    let (wrong, open) = (of_kind(Some(false)), of_kind(None));
    match (wrong.is_empty(), open.is_empty()) {
        (false, _) => Judgement::Differs(wrong),
        (true, false) => Judgement::Undecided(open),
        (true, true) if parts.is_empty() => Judgement::Undecided("there is nothing to compare".into()),
        (true, true) => Judgement::Agrees,
    }
}

/// As [`all_hold`], for a claim about those applications of which something can be said.
pub fn decided_hold(parts: Vec<Claim>) -> Judgement {
    let (decided, open): (Vec<Claim>, Vec<Claim>) = parts.into_iter().partition(|part| part.holds.is_some());
    all_hold(if decided.is_empty() { &open } else { &decided })
}

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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(application: &'static str, holds: Option<bool>) -> Claim {
        Claim { application, holds, found: "so".into() }
    }

    #[test]
    fn a_claim_agrees_if_all_its_parts_hold() {
        assert_eq!(all_hold(&[part("a", Some(true)), part("b", Some(true))]), Judgement::Agrees);
        assert_eq!(all_hold(&[part("a", Some(true)), part("b", None)]), Judgement::Undecided("b: so".into()));
        assert_eq!(all_hold(&[part("a", Some(false)), part("b", None)]), Judgement::Differs("a: so".into()));
        assert!(matches!(all_hold(&[]), Judgement::Undecided(_)));
        assert_eq!(decided_hold(vec![part("a", Some(true)), part("b", None)]), Judgement::Agrees);
        assert_eq!(decided_hold(vec![part("b", None)]), Judgement::Undecided("b: so".into()));
    }

    #[test]
    fn few_rounds_and_load_give_no_verdict() {
        let agrees = || Judgement::Agrees;
        let load = |foreign| Some(Load { foreign, stolen: 0.0, foreign_least: foreign });
        assert_eq!(judged(3, None, agrees), Judgement::Agrees);
        assert_eq!(judged(3, load(0.05), agrees), Judgement::Agrees);
        assert!(matches!(judged(2, None, agrees), Judgement::Undecided(why) if why.starts_with("2 of the 3 rounds")));
        assert!(matches!(judged(9, load(0.25), agrees), Judgement::Undecided(why) if why.contains("25 %")));
    }

    #[test]
    fn times_whose_runs_overlap_are_level() {
        let [a, b, c] = [[1.0, 1.1, 1.2], [1.2, 1.26, 1.3], [2.0, 2.1, 2.2]].map(|times| Tally::of(&times));
        assert_eq!(Contrast::of(&a, &b), Contrast::Level);
        assert_eq!([Contrast::of(&a, &c), Contrast::of(&c, &a)], [Contrast::Faster, Contrast::Slower]);
    }
}
