//! Statistics of several runs: the median, the spread, and the winning strategy.

/// Five numbers about the runs of one strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    pub least: f64,
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
    pub most: f64,
}

impl Tally {
    /// Summarises `values`, of which there is at least one.
    pub fn of(values: &[f64]) -> Tally {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Interpolates between the two values around the place.
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let below = sorted[place as usize];
            let above = sorted[(place.ceil()) as usize];
            below + (above - below) * place.fract()
        };
        Tally { least: at(0.0), lower_quartile: at(0.25), median: at(0.5), upper_quartile: at(0.75), most: at(1.0) }
    }

    /// Returns true if the middle halves of the runs overlap, or if the medians differ by at most a hundredth.
    fn is_level_with(&self, best: &Tally) -> bool {
        self.lower_quartile <= best.upper_quartile || self.median <= best.median * 1.01
    }
}

/// The fastest strategies.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The indexes of the strategies between which the runs show no difference, the fastest first.
    pub first: Vec<usize>,
    /// The relative lead over the next strategy (0.25: it takes a quarter more time), if there is one that is not
    /// first.
    pub ahead: Option<f64>,
}

impl Verdict {
    /// Judges one strategy or more.
    pub fn of(tallies: &[Tally]) -> Verdict {
        let mut order: Vec<usize> = (0..tallies.len()).collect();
        order.sort_by(|a, b| tallies[*a].median.total_cmp(&tallies[*b].median));
        let best = &tallies[order[0]];
        let (first, others): (Vec<usize>, Vec<usize>) =
            order.iter().partition(|place| tallies[**place].is_level_with(best));
        let ahead = others.first().map(|next| tallies[*next].median / best.median - 1.0);
        Verdict { first, ahead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_the_textbook() {
        let tally = Tally::of(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((tally.least, tally.lower_quartile, tally.median), (1.0, 2.0, 3.0));
        assert_eq!((tally.upper_quartile, tally.most), (4.0, 5.0));
        assert_eq!(Tally::of(&[1.0, 2.0]).median, 1.5);
        assert_eq!(Tally::of(&[7.0]).upper_quartile, 7.0);
    }

    #[test]
    fn a_winner_has_no_time_in_common_with_the_others() {
        let (fast, slow) = (Tally::of(&[1.0, 1.1, 1.2]), Tally::of(&[2.0, 2.2, 2.4]));
        let verdict = Verdict::of(&[slow, fast]);
        assert_eq!(verdict.first, [1]);
        assert_eq!(verdict.ahead, Some(2.2 / 1.1 - 1.0));
    }

    #[test]
    fn overlapping_spreads_are_not_a_difference() {
        let (a, b) = (Tally::of(&[1.0, 1.4, 1.8]), Tally::of(&[1.3, 1.5, 1.7]));
        assert_eq!(Verdict::of(&[b, a]), Verdict { first: vec![1, 0], ahead: None });
    }
}
