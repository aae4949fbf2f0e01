//! The fastest strategies of a comparison.

use gristmill_report::tally::Tally;

/// The fastest strategies.
#[derive(Clone, Debug, PartialEq)]
pub struct Fastest {
    /// The indexes of the strategies between which the runs show no difference, the fastest first.
    pub first: Vec<usize>,
    /// The relative lead over the next strategy (0.25: it takes a quarter more time), if there is one that is not
    /// first.
    pub ahead: Option<f64>,
}

impl Fastest {
    /// Judges one strategy or more.
    pub fn of(tallies: &[Tally]) -> Fastest {
        let mut order: Vec<usize> = (0..tallies.len()).collect();
        order.sort_by(|a, b| tallies[*a].median.total_cmp(&tallies[*b].median));
        let best = &tallies[order[0]];
        let (first, others): (Vec<usize>, Vec<usize>) =
            order.iter().partition(|place| tallies[**place].is_level_with(best));
        let ahead = others.first().map(|next| tallies[*next].median / best.median - 1.0);
        Fastest { first, ahead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_winner_has_no_time_in_common_with_the_others() {
        let (fast, slow) = (Tally::of(&[1.0, 1.1, 1.2]), Tally::of(&[2.0, 2.2, 2.4]));
        let verdict = Fastest::of(&[slow, fast]);
        assert_eq!(verdict.first, [1]);
        assert_eq!(verdict.ahead, Some(2.2 / 1.1 - 1.0));
    }

    #[test]
    fn overlapping_spreads_are_not_a_difference() {
        let (a, b) = (Tally::of(&[1.0, 1.4, 1.8]), Tally::of(&[1.3, 1.5, 1.7]));
        assert_eq!(Fastest::of(&[b, a]), Fastest { first: vec![1, 0], ahead: None });
    }
}
