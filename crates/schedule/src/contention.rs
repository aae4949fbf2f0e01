//! The three states in which a program runs as fast as alone, or nearly so (the paper's section 3.1).

/// Why a program's quantum counts as one without contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Little {
    /// It asks for little itself.
    OwnDemand,
    /// All programs together ask for little.
    System,
    /// At most one program asks for much.
    OnlyOne,
}

/// Where the states begin, as shares of the largest bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// `BTRSelfLow`: below it a program does not notice the others.
    pub own: f64,
    /// `BTRSyswideLow`: below it nobody notices anybody.
    pub system: f64,
}

impl Default for Thresholds {
    /// Those of the paper: 4 % and a third.
    fn default() -> Thresholds {
        Thresholds { own: 0.04, system: 1.0 / 3.0 }
    }
}

impl Thresholds {
    /// The state of each program of a quantum; `None` for one that others may have slowed down.
    ///
    /// `used` holds the bandwidth of each program, `foreign` that of programs that are none of ours.
    pub fn states(&self, used: &[f64], foreign: f64, peak: f64) -> Vec<Option<Little>> {
        let own = self.own * peak;
        let system = used.iter().sum::<f64>() + foreign;
        let intensive = used.iter().chain([&foreign]).filter(|used| **used > own).count();
        used.iter()
            .map(|used| match () {
                _ if *used < own => Some(Little::OwnDemand),
                _ if system < self.system * peak => Some(Little::System),
                _ if intensive <= 1 => Some(Little::OnlyOne),
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(used: &[f64]) -> Vec<Option<Little>> {
        Thresholds::default().states(used, 0.0, 120.0)
    }

    #[test]
    fn state_1_own_demand_below_4_percent_of_peak() {
        assert_eq!(states(&[4.7, 60.0, 60.0])[0], Some(Little::OwnDemand));
        assert_eq!(states(&[4.9, 60.0, 60.0])[0], None);
    }

    #[test]
    fn state_2_system_below_a_third_of_peak() {
        assert_eq!(states(&[19.0, 20.0]), [Some(Little::System); 2]);
        assert_eq!(states(&[20.0, 21.0]), [None; 2]);
    }

    #[test]
    fn state_3_at_most_one_program_above_4_percent() {
        assert_eq!(
            states(&[60.0, 4.0, 4.5]),
            [Some(Little::OnlyOne), Some(Little::OwnDemand), Some(Little::OwnDemand)]
        );
        assert_eq!(states(&[60.0, 4.0, 5.0])[0], None);
    }

    #[test]
    fn requests_of_foreign_programs_count_like_a_program_of_ours() {
        let with = |foreign| Thresholds::default().states(&[30.0], foreign, 120.0)[0];
        assert_eq!((with(0.0), with(9.0), with(11.0)), (Some(Little::System), Some(Little::System), None));
    }
}
