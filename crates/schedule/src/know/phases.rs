//! Phases of a program, found at run time (the paper's section 3.2).

use crate::know::blocks::BlockVector;
use crate::know::estimate::Estimate;

/// Quanta in which a program executed the same code.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The mean vector of its quanta.
    pub centroid: BlockVector,
    /// The number of its quanta in all executions.
    pub quanta: u64,
    /// Instructions per microsecond when the program is alone.
    pub rate: Estimate,
    /// Requests per microsecond when the program is alone.
    pub bandwidth: Estimate,
}

/// All phases of a program. A phase is identified by its place, which never changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    table: Vec<Phase>,
}

/// The rule by which a quantum belongs to a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    /// The Manhattan distance below which a vector belongs to a centroid.
    pub distance_max: f32,
    /// The maximum number of phases of a program. When it is reached, a new vector goes to the nearest phase.
    pub phases_max: usize,
}

impl Default for Similarity {
    /// Two sets of two hundred samples of the same code are about 0.3 apart; different code is between 1 and 2 apart.
    /// Our copy of the paper lacks its threshold. The paper found 213 phases at most.
    fn default() -> Similarity {
        Similarity { distance_max: 0.5, phases_max: 256 }
    }
}

impl FromIterator<Phase> for Phases {
    /// Makes the table of stored phases, in order of their places.
    fn from_iter<I: IntoIterator<Item = Phase>>(phases: I) -> Phases {
        Phases { table: phases.into_iter().collect() }
    }
}

/// The maximum weight of a centroid's past in quanta, so that it can follow a program that changes.
const MEMORY_QUANTA: u64 = 1000;

impl Phases {
    /// Returns the phase of a quantum with this vector: the nearest, or a new one.
    pub fn recognise(&mut self, vector: &BlockVector, similarity: &Similarity) -> usize {
        let distances = self.table.iter().map(|phase| phase.centroid.distance(vector)).enumerate();
        let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1));
        let known = nearest.filter(|(_, distance)| {
            *distance < similarity.distance_max || self.table.len() >= similarity.phases_max.max(1)
        });
        let place = match known {
            Some((place, _)) => place,
            None => {
                let (rate, bandwidth) = Default::default();
                self.table.push(Phase { centroid: BlockVector::default(), quanta: 0, rate, bandwidth });
                self.table.len() - 1
            }
        };
        let phase = &mut self.table[place];
        phase.quanta += 1;
        phase.centroid.take_in(vector, phase.quanta.min(MEMORY_QUANTA));
        place
    }

    /// Adds the measurements of a quantum to a phase.
    pub fn update(&mut self, place: usize, rate: f64, bandwidth: f64, valid: bool) {
        let phase = &mut self.table[place];
        phase.rate.update(rate, valid);
        phase.bandwidth.update(bandwidth, valid);
    }

    /// Sets the demand of a phase, which was estimated from readings of memory, and makes the phase valid. Its rate is
    /// one microsecond of work in a microsecond.
    pub fn set_demand(&mut self, place: usize, demand: f64) {
        if let Some(phase) = self.table.get_mut(place) {
            phase.rate.update(1.0, true);
            phase.bandwidth = Estimate { mean: demand, samples: phase.rate.samples, valid: true };
        }
    }

    /// Returns the mean demand of the phases whose demand is known; `None` if there are none.
    pub fn mean_demand(&self) -> Option<f64> {
        let known = || self.table.iter().filter(|phase| phase.bandwidth.valid);
        let quanta: u64 = known().map(|phase| phase.quanta).sum();
        let sum: f64 = known().map(|phase| phase.bandwidth.mean * phase.quanta as f64).sum();
        (quanta > 0).then(|| sum / quanta as f64)
    }

    /// Sets the demand of all phases of which nothing better is known: that of the whole program.
    pub fn set_missing_demands(&mut self, demand: f64) {
        for place in 0..self.table.len() {
            if !self.table[place].rate.valid {
                self.set_demand(place, demand);
            }
        }
    }

    /// Returns a phase by its place.
    pub fn get(&self, place: usize) -> Option<&Phase> {
        self.table.get(place)
    }

    /// The number of phases.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns true if no quantum has been seen.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns all phases in order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Phase> {
        self.table.iter()
    }

    /// Returns the share of all quanta whose phase has a valid estimate (the paper's section 3.3); 0 if there are no
    /// quanta.
    pub fn coverage(&self) -> f64 {
        let quanta = |phases: &mut dyn Iterator<Item = &Phase>| phases.map(|phase| phase.quanta).sum::<u64>() as f64;
        let all = quanta(&mut self.table.iter());
        if all == 0.0 { 0.0 } else { quanta(&mut self.table.iter().filter(|phase| phase.rate.valid)) / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(addresses: &[u64]) -> BlockVector {
        BlockVector::of(addresses)
    }

    #[test]
    fn quanta_of_the_same_code_are_one_phase() {
        let (mut phases, similarity) = (Phases::default(), Similarity::default());
        let places: Vec<usize> = [[0, 64, 128, 192], [4096; 4], [0, 64, 128, 128], [4096; 4]]
            .map(|addresses| phases.recognise(&vector(&addresses), &Similarity { distance_max: 0.6, ..similarity }))
            .into();
        assert_eq!(places, [0, 1, 0, 1]);
        assert_eq!(phases.get(0).map(|phase| phase.quanta), Some(2));
    }

    #[test]
    fn a_quantum_belongs_to_the_nearest_centroid() {
        let (mut phases, similarity) = (Phases::default(), Similarity { distance_max: 1.9, phases_max: 8 });
        phases.recognise(&vector(&[0]), &similarity);
        phases.recognise(&vector(&[64]), &similarity);
        assert_eq!(phases.recognise(&vector(&[0, 64, 64]), &similarity), 1);
        assert_eq!(phases.recognise(&vector(&[0, 0, 64]), &similarity), 0);
    }

    #[test]
    fn the_number_of_phases_is_bounded() {
        let (mut phases, similarity) = (Phases::default(), Similarity { distance_max: 0.5, phases_max: 3 });
        for address in 0..100 {
            phases.recognise(&vector(&[address * 64]), &similarity);
        }
        assert_eq!(phases.len(), 3);
        assert_eq!(phases.iter().map(|phase| phase.quanta).sum::<u64>(), 100);
    }

    #[test]
    fn coverage_is_the_share_of_quanta_whose_phase_has_a_valid_estimate() {
        let (mut phases, similarity) = (Phases::default(), Similarity::default());
        assert_eq!(phases.coverage(), 0.0);
        for address in [0, 0, 0, 640] {
            phases.recognise(&vector(&[address]), &similarity);
        }
        phases.update(0, 1.0, 1.0, true);
        phases.update(1, 1.0, 1.0, false);
        assert_eq!(phases.coverage(), 0.75);
        phases.update(1, 1.0, 1.0, true);
        assert_eq!(phases.coverage(), 1.0);
    }
}
