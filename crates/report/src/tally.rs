//! Statistics of several runs: the median and the spread.

/// Five numbers about equal runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    /// The least value.
    pub least: f64,
    /// A quarter of the values are below this.
    pub lower_quartile: f64,
    /// Half of the values are below this.
    pub median: f64,
    /// A quarter of the values are above this.
    pub upper_quartile: f64,
    /// The greatest value.
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
    pub fn is_level_with(&self, best: &Tally) -> bool {
        self.lower_quartile <= best.upper_quartile || self.median <= best.median * 1.01
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
}
