//! What many runs say together: the middle, the spread, and which strategy wins.

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
    /// Of `values`, of which there is at least one.
    pub fn of(values: &[f64]) -> Tally {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Between two values that surround the place, in proportion.
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let below = sorted[place as usize];
            let above = sorted[(place.ceil()) as usize];
            below + (above - below) * place.fract()
        };
        Tally { least: at(0.0), lower_quartile: at(0.25), median: at(0.5), upper_quartile: at(0.75), most: at(1.0) }
    }

    /// The middle halves of the runs have times in common, or the medians differ by no more than a hundredth.
    fn is_level_with(&self, best: &Tally) -> bool {
        self.lower_quartile <= best.upper_quartile || self.median <= best.median * 1.01
    }
}

/// Who is fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Places of the strategies between which the runs show no difference, the fastest first.
    pub first: Vec<usize>,
    /// How much more time the next one takes (0.25: a quarter more), if there is one that is not first.
    pub ahead: Option<f64>,
}

impl Verdict {
    /// Judges at least one strategy.
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
    fn spreads_that_overlap_are_no_difference() {
        let (a, b) = (Tally::of(&[1.0, 1.4, 1.8]), Tally::of(&[1.3, 1.5, 1.7]));
        assert_eq!(Verdict::of(&[b, a]), Verdict { first: vec![1, 0], ahead: None });
    }
}
