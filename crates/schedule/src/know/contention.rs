//! The three states in which a program runs at nearly the speed it has alone (the paper's section 3.1).

/// The reason why a program's quantum counts as free of contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Little {
    /// The program itself demands little.
    OwnDemand,
    /// All programs together demand little.
    System,
    /// At most one program demands much.
    OnlyOne,
}

/// `BTRSelfLow`, as a share of the largest bandwidth: a program below it is not slowed down by others.
const OWN_LOW: f64 = 0.04;
/// `BTRSyswideLow`: if all together are below it, no program is slowed down.
pub(crate) const SYSTEM_LOW: f64 = 1.0 / 3.0;

/// Returns the state of each program in a quantum; `None` for a program that others may have slowed down.
///
/// `own` holds the bandwidth of each program while it ran, which may have been a part of the quantum; `system` is
/// that of all programs in the whole quantum, and `foreign` the part of it from outside the scheduler.
pub fn states(own: &[f64], system: f64, foreign: f64, peak: f64) -> Vec<Option<Little>> {
    let low = OWN_LOW * peak;
    let intensive = own.iter().chain([&foreign]).filter(|own| **own > low).count();
    own.iter()
        .map(|own| match () {
            _ if *own < low => Some(Little::OwnDemand),
            _ if system < SYSTEM_LOW * peak => Some(Little::System),
            _ if intensive <= 1 => Some(Little::OnlyOne),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(used: &[f64]) -> Vec<Option<Little>> {
        states(used, used.iter().sum(), 0.0, 120.0)
    }

    #[test]
    fn state_1_own_demand_below_4_percent_of_peak() {
        assert_eq!(alone(&[4.7, 60.0, 60.0])[0], Some(Little::OwnDemand));
        assert_eq!(alone(&[4.9, 60.0, 60.0])[0], None);
    }

    #[test]
    fn state_2_system_below_a_third_of_peak() {
        assert_eq!(alone(&[19.0, 20.0]), [Some(Little::System); 2]);
        assert_eq!(alone(&[20.0, 21.0]), [None; 2]);
    }

    #[test]
    fn state_3_at_most_one_program_above_4_percent() {
        assert_eq!(alone(&[60.0, 4.0, 4.5]), [Some(Little::OnlyOne), Some(Little::OwnDemand), Some(Little::OwnDemand)]);
        assert_eq!(alone(&[60.0, 4.0, 5.0])[0], None);
    }

    /// Four programs shared each processor, and each seemed to demand a quarter of what it did.
    #[test]
    fn a_program_that_ran_for_a_part_of_the_quantum_counts_by_its_bandwidth_while_it_ran() {
        assert_eq!(states(&[15.0; 32], 120.0, 0.0, 120.0), [None; 32]);
    }

    #[test]
    fn requests_of_foreign_programs_count_like_a_program_of_ours() {
        let with = |foreign| states(&[30.0], 30.0 + foreign, foreign, 120.0)[0];
        assert_eq!((with(0.0), with(9.0), with(11.0)), (Some(Little::System), Some(Little::System), None));
    }
}
