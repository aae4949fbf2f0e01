//! Whether demands of earlier sessions still show in the readings of the last seconds.

use std::collections::VecDeque;

use crate::machine::Reading;
use crate::uncounted::probed::DEMAND_MIN;

/// The number of readings that [`Today`] remembers of each kind, and needs.
const TODAY_READINGS: [usize; 2] = [15, 4];

/// How far readings of the last seconds show the demands that are known.
///
/// Demands may come from an earlier session, and a machine that is shared with others changes. Readings beside programs
/// that should press are compared with readings beside nobody, or programs that should not. Both kinds come from the
/// same seconds, so a foreign program that slows all readings down does not count.
#[derive(Clone, Debug, Default)]
pub struct Today {
    /// Readings beside little demand, and beside much: the demand, and the time.
    readings: [VecDeque<(f64, f64)>; 2],
    /// Readings before any program began. They count until there are enough beside little demand, which come from the
    /// same seconds as the others.
    undisturbed: VecDeque<(f64, f64)>,
}

impl Today {
    /// Makes a value with readings that were taken before any program began.
    pub fn after(undisturbed: &[Reading]) -> Today {
        Today { undisturbed: undisturbed.iter().map(|reading| (0.0, reading.took_us)).collect(), ..Today::default() }
    }

    /// Adds a reading beside programs with this demand together.
    pub fn add(&mut self, demand: f64, took_us: f64) {
        let kind = match demand {
            much if much >= DEMAND_MIN => 1,
            little if little < DEMAND_MIN / 2.0 => 0,
            _ => return,
        };
        self.readings[kind].push_back((demand, took_us));
        if self.readings[kind].len() > TODAY_READINGS[0] {
            self.readings[kind].pop_front();
        }
    }

    /// Returns the share of the demands that shows: 1 if readings are as slow as the demands say, 0 if they are not
    /// slowed down at all. `None` with too few readings.
    pub fn share(&self) -> Option<f64> {
        let [calm, pressed] = &self.readings;
        let calm = if calm.len() < TODAY_READINGS[1] { &self.undisturbed } else { calm };
        if calm.len().min(pressed.len()) < TODAY_READINGS[1] {
            return None;
        }
        let quartiles = |readings: &VecDeque<(f64, f64)>| {
            let mut times: Vec<f64> = readings.iter().map(|reading| reading.1).collect();
            times.sort_unstable_by(f64::total_cmp);
            [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
        };
        let demand = |readings: &VecDeque<(f64, f64)>| {
            readings.iter().map(|reading| reading.0).sum::<f64>() / readings.len() as f64
        };
        let ([_, calm_us, calm_most_us], [pressed_least_us, pressed_us, _]) = (quartiles(calm), quartiles(pressed));
        // Where the quartiles overlap, the difference may be noise.
        if pressed_least_us <= calm_most_us {
            return Some(0.0);
        }
        let known = (1.0 + demand(pressed)) / (1.0 + demand(calm)) - 1.0;
        Some(((pressed_us / calm_us - 1.0) / known).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings beside demands of 0 and 0.6.
    fn today(calm_us: &[f64], pressed_us: &[f64]) -> Option<f64> {
        let mut today = Today::default();
        calm_us.iter().for_each(|took_us| today.add(0.0, *took_us));
        pressed_us.iter().for_each(|took_us| today.add(0.6, *took_us));
        today.share()
    }

    #[test]
    fn demands_of_an_earlier_session_count_as_far_as_todays_readings_show_them() {
        assert_eq!(today(&[10.0; 4], &[16.0; 3]), None);
        for (pressed_us, share) in [(16.0, 1.0), (13.0, 0.5), (10.0, 0.0), (20.0, 1.0)] {
            let found = today(&[10.0; 4], &[pressed_us; 4]).expect("there are enough");
            assert!((found - share).abs() < 1e-9, "{pressed_us}: {found}");
        }
    }

    #[test]
    fn readings_before_the_first_program_count_until_there_are_others() {
        let undisturbed = [(); 8].map(|()| Reading { took_us: 10.0, used: Vec::new() });
        let mut today = Today::after(&undisturbed);
        (0..4).for_each(|_| today.add(0.6, 16.0));
        assert!(today.share().is_some_and(|share| share > 0.99));
        // A foreign program has begun since.
        (0..4).for_each(|_| today.add(0.0, 16.0));
        assert_eq!(today.share(), Some(0.0));
    }

    #[test]
    fn a_foreign_program_that_slows_all_readings_down_does_not_count() {
        assert_eq!(today(&[15.0, 16.0, 15.0, 17.0], &[16.0, 15.0, 16.0, 15.0]), Some(0.0));
        // One that comes and goes makes the readings overlap.
        assert_eq!(today(&[10.0, 17.0, 10.0, 17.0, 10.0, 17.0], &[10.0, 18.0, 17.0, 18.0, 10.0]), Some(0.0));
    }
}
