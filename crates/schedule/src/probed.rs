//! Demands of the phases of programs, on a machine that reads memory and counts nothing (beyond the paper).
//!
//! A quantum's readings belong to the phases that its programs had in it. Work is measured in microseconds of processor time, and a request is
//! the pressure of one unit of slow-down for a microsecond; the policy only compares demands with each other, so their unit does not matter.
//!
//! What a program loses beside others cannot be measured without a count of instructions. [`avoidable`] estimates how much of it the choice of
//! programs could avoid, and [`Today`] whether the demands of earlier sessions still hold.

use std::collections::{BTreeMap, VecDeque};

use crate::machine::{ProgramId, Reading};
use crate::pressure::{Pressures, Source};

/// The number of quanta after which the demands are computed again.
const QUANTA: u32 = 10;

/// The least distance between demands at which they count as different. On a machine at hand without contention, medians of readings differed by up to a quarter
/// while foreign programs came and went; on one with contention, a demanding program slowed readings down by more than a half.
const DEMAND_MIN: f64 = 0.3;

/// The number of readings that [`Today`] remembers of each kind, and needs.
const TODAY_READINGS: [usize; 2] = [15, 4];

/// A phase of a program: its build, and the place of the phase.
pub(crate) type Place = (String, usize);

/// The readings of this session, by phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probed {
    pressures: Pressures,
    sources: BTreeMap<Place, Source>,
    quanta: u32,
}

impl Probed {
    /// Adds a quantum's readings. `phase` returns the phase of a program in this quantum.
    pub(crate) fn add(&mut self, readings: &[Reading], phase: impl Fn(ProgramId) -> Option<Place>) {
        for reading in readings {
            let used = reading.used.iter().filter(|(_, processors)| *processors > 0.0);
            let sources: Option<Vec<(Source, f64)>> = used
                .map(|(id, processors)| {
                    let next = self.sources.len();
                    Some((*self.sources.entry(phase(*id)?).or_insert(next), *processors))
                })
                .collect();
            if let Some(sources) = sources {
                self.pressures.add(&sources, reading.took_us);
            }
        }
    }

    /// Returns the demands that the readings determine, from time to time.
    pub(crate) fn demands(&mut self) -> Vec<(&Place, f64)> {
        self.quanta += 1;
        if !self.quanta.is_multiple_of(QUANTA) {
            return Vec::new();
        }
        let demands = self.pressures.demands();
        self.sources.iter().filter_map(|(place, source)| Some((place, *demands.get(source)?))).collect()
    }
}

/// Estimates the share of its speed that each program loses in the system's order, and would keep in even sets.
///
/// A program is slowed down like a reading beside the others, as far as its own demand reaches the largest one: a program that hardly uses the
/// memory hardly waits for it. In the system's order, any other program may be beside it; in an even set, the others demand what it leaves of
/// the target. Programs with the same demand lose the same in any order, so this is 0 for them. It is negative for a program that even sets
/// slow down.
pub(crate) fn avoidable(demands: &[f64], processors: usize) -> Vec<f64> {
    let (least, most) =
        demands.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), demand| (least.min(*demand), most.max(*demand)));
    if demands.len() <= processors || processors < 2 || most - least < DEMAND_MIN {
        return vec![0.0; demands.len()];
    }
    let others = (processors - 1) as f64;
    let lost = |slow_down: f64| slow_down / (1.0 + slow_down);
    let beside_any: f64 = demands.iter().map(|demand| lost(others * demand)).sum();
    let target = processors as f64 * demands.iter().sum::<f64>() / demands.len() as f64;
    let of = |demand: &f64| {
        let usual = (beside_any - lost(others * demand)) / (demands.len() - 1) as f64;
        (demand / most) * (usual - lost((target - demand).max(0.0)))
    };
    demands.iter().map(of).collect()
}

/// How far readings of the last seconds show the demands that are known (beyond the paper).
///
/// Demands may come from an earlier session, and a machine that is shared with others changes. Readings beside programs that should press are
/// compared with readings beside nobody, or programs that should not. Both kinds come from the same seconds, so a foreign program that slows all
/// readings down does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Today {
    /// Readings beside little demand, and beside much: the demand, and the time.
    readings: [VecDeque<(f64, f64)>; 2],
    /// Readings before any program began. They count until there are enough beside little demand, which come from the same seconds as the others.
    undisturbed: VecDeque<(f64, f64)>,
}

impl Today {
    /// Makes a value with readings that were taken before any program began.
    pub(crate) fn after(undisturbed: &[Reading]) -> Today {
        Today { undisturbed: undisturbed.iter().map(|reading| (0.0, reading.took_us)).collect(), ..Today::default() }
    }

    /// Adds a reading beside programs with this demand together.
    pub(crate) fn add(&mut self, demand: f64, took_us: f64) {
        let kind = match demand {
            much if much >= DEMAND_MIN => 1,
            little if little < DEMAND_MIN / 3.0 => 0,
            _ => return,
        };
        self.readings[kind].push_back((demand, took_us));
        if self.readings[kind].len() > TODAY_READINGS[0] {
            self.readings[kind].pop_front();
        }
    }

    /// Returns the share of the demands that shows: 1 if readings are as slow as the demands say, 0 if they are not slowed down at all.
    /// `None` with too few readings.
    pub(crate) fn share(&self) -> Option<f64> {
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

    #[test]
    fn the_avoidable_loss_is_that_of_the_systems_order_less_that_of_even_sets() {
        // On two processors, a demanding program meets the other one in a third of the time, and never in even sets.
        let losses = avoidable(&[0.5, 0.5, 0.0, 0.0], 2);
        let expected = 0.5 / 1.5 / 3.0;
        assert!((losses[0] - expected).abs() < 1e-9 && losses[2] == 0.0, "{losses:?}");
    }

    #[test]
    fn nothing_is_avoidable_for_equal_programs_or_with_a_processor_for_each() {
        assert_eq!(avoidable(&[1.0; 4], 2), [0.0; 4]);
        assert_eq!(avoidable(&[1.0, 0.0], 2), [0.0; 2]);
        assert_eq!(avoidable(&[1.0, 0.0], 1), [0.0; 2]);
        assert_eq!(avoidable(&[], 2), []);
    }

    #[test]
    fn demands_that_may_be_noise_cost_nobody_anything() {
        assert_eq!(avoidable(&[0.25, 0.25, 0.0, 0.0], 2), [0.0; 4]);
        // All of them seem to press equally while a foreign program does.
        assert_eq!(avoidable(&[0.9, 1.0, 0.8, 0.9], 2), [0.0; 4]);
        assert!(avoidable(&[0.6, 0.6, 0.0, 0.0], 2)[0] > 0.1);
    }

    #[test]
    fn a_reading_beside_a_program_without_a_phase_is_left_out() {
        let mut probed = Probed::default();
        let reading = |id: u32| Reading { took_us: 10.0, used: vec![(ProgramId(id), 1.0), (ProgramId(9), 0.0)] };
        let phase = |id: ProgramId| (id.0 == 1).then(|| ("a".to_owned(), 3));
        (0..8).for_each(|_| probed.add(&[reading(1), reading(2)], phase));
        let demands: Vec<_> = (0..QUANTA)
            .flat_map(|_| {
                let demands: Vec<(Place, f64)> =
                    probed.demands().into_iter().map(|(place, demand)| (place.clone(), demand)).collect();
                demands
            })
            .collect();
        assert_eq!(demands, [(("a".to_owned(), 3), 0.0)]);
    }

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
