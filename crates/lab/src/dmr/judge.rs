//! When a verdict is given, and how one is made of several.

use gristmill_counters::load::Load;

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

/// Lists the findings, each with its application.
pub fn findings<'c>(parts: impl IntoIterator<Item = &'c Claim>) -> String {
    let found = parts.into_iter().map(|part| format!("{}: {}", part.application, part.found));
    found.collect::<Vec<_>>().join("; ")
}

/// Returns the verdict of a claim about several applications: it agrees if each part holds.
pub fn all_hold(parts: &[Claim]) -> Judgement {
    let of_kind = |holds: Option<bool>| findings(parts.iter().filter(|part| part.holds == holds));
    let (wrong, open) = (of_kind(Some(false)), of_kind(None));
    match (wrong.is_empty(), open.is_empty()) {
        (false, _) => Judgement::Differs(wrong),
        (true, false) => Judgement::Undecided(open),
        (true, true) if parts.is_empty() => Judgement::Undecided("there is nothing to compare".into()),
        (true, true) => Judgement::Agrees,
    }
}

/// As [`all_hold`], for a claim that `needed` of the applications keep.
pub fn enough_hold(parts: Vec<Claim>, needed: usize) -> Judgement {
    let count = |holds| parts.iter().filter(|part| part.holds == holds).count();
    let (held, open) = (count(Some(true)), count(None));
    if !parts.is_empty() && held >= needed {
        return Judgement::Agrees;
    }
    let can_hold = held + open >= needed;
    all_hold(&parts.into_iter().filter(|part| !can_hold || part.holds.is_none()).collect::<Vec<_>>())
}

/// As [`all_hold`], for a claim about those applications of which something can be said.
pub fn decided_hold(parts: Vec<Claim>) -> Judgement {
    let (decided, open): (Vec<Claim>, Vec<Claim>) = parts.into_iter().partition(|part| part.holds.is_some());
    all_hold(if decided.is_empty() { &open } else { &decided })
}

/// Returns the verdict of a claim about more processors than this machine has, with the finding on these.
pub fn too_few_processors(what: &str, needed: usize, here: usize, found: &str) -> Judgement {
    Judgement::CannotBeAsked(format!("{what} {needed} processors, and {here} are here ({found})"))
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
    fn a_claim_about_some_applications_is_open_as_long_as_enough_may_hold() {
        let enough = |holds: [Option<bool>; 3]| enough_hold(holds.map(|holds| part("a", holds)).into(), 2);
        assert_eq!(enough([Some(true), Some(true), Some(false)]), Judgement::Agrees);
        assert_eq!(enough([Some(true), None, Some(false)]), Judgement::Undecided("a: so".into()));
        assert_eq!(enough([Some(true), Some(false), Some(false)]), Judgement::Differs("a: so; a: so".into()));
        assert!(matches!(enough_hold(Vec::new(), 0), Judgement::Undecided(_)));
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
}
