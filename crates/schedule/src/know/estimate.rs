//! Estimates that improve with each sample, as in the paper's table of phases (section 3.2).

/// The mean of invalid samples until the first valid one, then of valid samples only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The number of samples.
    pub samples: u64,
    /// The samples are valid.
    pub valid: bool,
}

impl Estimate {
    /// Adds a sample. It is valid if it was taken with little contention.
    pub fn update(&mut self, sample: f64, valid: bool) {
        if valid && !self.valid {
            *self = Estimate { mean: 0.0, samples: 0, valid: true };
        }
        if valid == self.valid {
            self.samples += 1;
            self.mean += (sample - self.mean) / self.samples as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[(f64, bool)]) -> Estimate {
        let mut estimate = Estimate::default();
        samples.iter().for_each(|(sample, valid)| estimate.update(*sample, *valid));
        estimate
    }

    #[test]
    fn until_the_first_valid_sample_the_mean_is_of_invalid_ones() {
        assert_eq!(after(&[(1.0, false), (3.0, false)]), Estimate { mean: 2.0, samples: 2, valid: false });
    }

    #[test]
    fn the_first_valid_sample_replaces_all_invalid_ones() {
        assert_eq!(
            after(&[(1.0, false), (3.0, false), (10.0, true)]),
            Estimate { mean: 10.0, samples: 1, valid: true }
        );
    }

    #[test]
    fn from_then_on_only_valid_samples_count() {
        let estimate = after(&[(10.0, true), (1.0, false), (20.0, true)]);
        assert_eq!(estimate, Estimate { mean: 15.0, samples: 2, valid: true });
    }
}
