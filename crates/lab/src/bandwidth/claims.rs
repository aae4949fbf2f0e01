//! Claims of the paper, each with a tolerance that is fixed before anything runs, and what was found in each round.

use std::fmt::Write;

use gristmill_report::tally::Tally;

use crate::page::{Judgement, ROUNDS_MIN};

/// A claim of the paper about a number.
pub struct Claim {
    /// The number, in words.
    pub what: String,
    /// The paper's value; nothing where it claims only an order.
    pub paper: Option<f64>,
    /// When it holds here.
    pub expected: Expected,
    /// The values that were found, one of each round.
    pub here: Vec<f64>,
}

/// The values for which a claim holds.
#[derive(Clone, Copy)]
pub enum Expected {
    /// Those as near to the paper's as this.
    Within(f64),
    AtLeast(f64),
    AtMost(f64),
    MoreThan(f64),
}

impl Claim {
    pub fn new(what: impl Into<String>, paper: Option<f64>, expected: Expected, here: Vec<f64>) -> Claim {
        Claim { what: what.into(), paper, expected, here }
    }

    /// Returns whether the median of the rounds is as expected.
    pub fn holds(&self) -> bool {
        let found = median(&self.here);
        match self.expected {
            Expected::Within(tolerance) => self.paper.is_some_and(|paper| (found - paper).abs() <= tolerance),
            Expected::AtLeast(least) => found >= least,
            Expected::AtMost(most) => found <= most,
            Expected::MoreThan(than) => found > than,
        }
    }
}

/// Returns the median; not a number if there are no values.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { Tally::of(values).median }
}

/// Returns the least and the greatest value.
pub fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)))
}

/// Formats the median of the rounds, and their range.
pub fn spread(values: &[f64]) -> String {
    let (least, most) = range(values);
    match values {
        [one] => format!("{one:.2}"),
        _ => format!("{:.2} ({least:.2} to {most:.2})", median(values)),
    }
}

/// Formats a table of claims.
pub fn table(claims: &[Claim]) -> String {
    let mut table = String::from(
        "the claims. \"Holds if\" was fixed before this run, in part after earlier records were read.\n\n\
         | claim | the paper | holds if | here: median of the rounds (range) | |\n|---|---|---|---|---|\n",
    );
    for claim in claims {
        let expected = match claim.expected {
            Expected::Within(tolerance) => format!("within {tolerance} of it"),
            Expected::AtLeast(least) => format!("{least} or more"),
            Expected::AtMost(most) => format!("{most} or less"),
            Expected::MoreThan(than) => format!("more than {than}"),
        };
        let paper = claim.paper.map_or(String::new(), |paper| paper.to_string());
        let holds = if claim.holds() { "holds" } else { "does not hold" };
        writeln!(table, "| {} | {paper} | {expected} | {} | {holds} |", claim.what, spread(&claim.here))
            .expect("a string takes everything");
    }
    table
}

/// Returns the verdict of all claims: that of the rounds if these are too few, and else whether all of them hold. If
/// not, it says how many do, and `why`.
pub fn verdict(claims: &[Claim], why: impl FnOnce() -> String) -> Judgement {
    let rounds = claims.iter().map(|claim| claim.here.len()).min().unwrap_or(0);
    if rounds < ROUNDS_MIN {
        return Judgement::Undecided(format!("{rounds} of {ROUNDS_MIN} rounds"));
    }
    let held = claims.iter().filter(|claim| claim.holds()).count();
    Judgement::of(held == claims.len(), || format!("{held} of {} claims hold. {}", claims.len(), why()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_by_the_median_of_the_rounds() {
        let near = |here: &[f64]| Claim::new("gain", Some(3.73), Expected::Within(1.0), here.to_vec()).holds();
        assert!(near(&[2.8, 9.0, 3.0]) && near(&[4.7]) && !near(&[4.8, 4.8, 3.7]) && !near(&[]));
        let more = |here: &[f64]| Claim::new("order", None, Expected::MoreThan(0.0), here.to_vec()).holds();
        assert!(more(&[-1.0, 0.1, 0.2]) && !more(&[0.0]) && !more(&[-1.0, 0.5]) && more(&[-1.0, 2.0]));
    }

    #[test]
    fn fewer_than_three_rounds_decide_nothing_and_a_broken_claim_is_counted() {
        let claims = |rounds: usize| {
            [("first", 1.0), ("second", 5.0)]
                .map(|(what, here)| Claim::new(what, Some(1.0), Expected::Within(0.5), vec![here; rounds]))
        };
        assert_eq!(verdict(&claims(2), String::new), Judgement::Undecided("2 of 3 rounds".into()));
        assert_eq!(verdict(&claims(3)[..1], String::new), Judgement::Agrees);
        let why = || "Because".to_owned();
        assert_eq!(verdict(&claims(3), why), Judgement::Differs("1 of 2 claims hold. Because".into()));
        let told = table(&claims(3));
        assert!(told.contains("| first | 1 | within 0.5 of it | 1.00 (1.00 to 1.00) | holds |"), "{told}");
        assert!(told.contains("| second | 1 | within 0.5 of it | 5.00 (5.00 to 5.00) | does not hold |"), "{told}");
    }
}
