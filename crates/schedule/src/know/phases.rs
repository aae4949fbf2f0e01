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
///
/// A phase without a valid estimate has a *neighbour*: the nearest phase that has one, if both execute the same code
/// for the greater part of their time (beyond the paper). Such a phase is mostly a quantum in which one piece of code
/// followed another, and each execution finds new ones. Without neighbours, a program that was covered by its first
/// executions would not be any more after later ones.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    table: Vec<Phase>,
    /// For each phase without a valid estimate, its neighbour and the distance to it.
    neighbours: Vec<Option<(usize, f32)>>,
}

impl PartialEq for Phases {
    /// Compares the phases. Their neighbours follow from them.
    fn eq(&self, other: &Phases) -> bool {
        self.table == other.table
    }
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
        let table: Vec<Phase> = phases.into_iter().collect();
        let mut phases = Phases { neighbours: vec![None; table.len()], table };
        for place in 0..phases.table.len() {
            if phases.table[place].rate.valid {
                phases.offer(place);
            }
        }
        phases
    }
}

/// The Manhattan distance below which more than half of the samples of two vectors fall into the same code.
const MOSTLY_THE_SAME: f32 = 1.0;
/// The maximum weight of a centroid's past in quanta, so that it can follow a program that changes.
const MEMORY_QUANTA: u64 = 1000;

impl Phases {
    /// Returns the phase of a quantum with this vector: the nearest, or a new one.
    pub fn recognise(&mut self, vector: &BlockVector, similarity: &Similarity) -> usize {
        let distances: Vec<f32> = self.table.iter().map(|phase| phase.centroid.distance(vector)).collect();
        let nearest = |is_valid: bool| {
            let of_these =
                distances.iter().copied().enumerate().filter(|(at, _)| !is_valid || self.table[*at].rate.valid);
            of_these.min_by(|a, b| a.1.total_cmp(&b.1))
        };
        let nearest_valid = nearest(true).filter(|(_, distance)| *distance < MOSTLY_THE_SAME);
        let nearest = nearest(false);
        let known = nearest.filter(|(_, distance)| {
            *distance < similarity.distance_max || self.table.len() >= similarity.phases_max.max(1)
        });
        let place = match known {
            Some((place, _)) => place,
            None => {
                let (rate, bandwidth) = Default::default();
                self.table.push(Phase { centroid: BlockVector::default(), quanta: 0, rate, bandwidth });
                self.neighbours.push(nearest_valid);
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
        let was_valid = phase.rate.valid;
        phase.rate.update(rate, valid);
        phase.bandwidth.update(bandwidth, valid);
        if valid && !was_valid {
            self.offer(place);
        }
    }

    /// Makes a phase whose estimates are valid now the neighbour of those that are nearer to it than to another.
    fn offer(&mut self, place: usize) {
        let centroid = &self.table[place].centroid;
        for (phase, neighbour) in self.table.iter().zip(&mut self.neighbours) {
            let distance = phase.centroid.distance(centroid);
            if !phase.rate.valid && distance < neighbour.map_or(MOSTLY_THE_SAME, |(_, nearest)| nearest) {
                *neighbour = Some((place, distance));
            }
        }
    }

    /// Returns the phase whose estimates hold for this one: itself if they are valid, or its neighbour.
    fn known(&self, place: usize) -> Option<&Phase> {
        let phase = self.table.get(place)?;
        if phase.rate.valid { Some(phase) } else { self.neighbours[place].map(|(neighbour, _)| &self.table[neighbour]) }
    }

    /// Returns the instructions per microsecond of a phase when the program is alone: its own or its neighbour's, and
    /// the slower ones beside other programs if neither is known.
    pub fn rate(&self, place: usize) -> Option<f64> {
        Some(self.known(place).or(self.table.get(place))?.rate.mean)
    }

    /// Returns the demand of a phase, its own or its neighbour's; `None` if neither is known.
    pub fn demand(&self, place: usize) -> Option<f64> {
        self.known(place).map(|phase| phase.bandwidth.mean)
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
        self.share(|place| self.table[place].rate.valid)
    }

    /// Returns the share of all quanta whose phase has a valid estimate or a neighbour that has one.
    pub fn coverage_with_neighbours(&self) -> f64 {
        self.share(|place| self.known(place).is_some())
    }

    fn share(&self, counts: impl Fn(usize) -> bool) -> f64 {
        let quanta = |place: &usize| self.table[*place].quanta;
        let all: u64 = (0..self.table.len()).map(|place| quanta(&place)).sum();
        let some: u64 = (0..self.table.len()).filter(|place| counts(*place)).map(|place| quanta(&place)).sum();
        if all == 0 { 0.0 } else { some as f64 / all as f64 }
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

    /// Groups ran unchosen for most of forty executions, because each found quanta in which one piece of code followed
    /// another, and always beside programs that asked for much.
    #[test]
    fn a_phase_that_was_never_seen_alone_has_the_demand_of_its_nearest_neighbour() {
        let (mut phases, similarity) = (Phases::default(), Similarity::default());
        let both = |first: usize| [vec![0; first], vec![640; 10 - first]].concat();
        // All in the first code, three quarters of it, all in the second, and in other code.
        let places: Vec<usize> = [both(10), both(7), both(0), vec![6400; 10]]
            .iter()
            .map(|addresses| phases.recognise(&vector(addresses), &similarity))
            .collect();
        assert_eq!(places, [0, 1, 2, 3]);
        phases.update(2, 1.0, 20.0, true);
        let demands = |phases: &Phases| places.iter().map(|place| phases.demand(*place)).collect::<Vec<_>>();
        assert_eq!(demands(&phases), [None, None, Some(20.0), None]);
        phases.update(0, 1.0, 60.0, true);
        assert_eq!(demands(&phases), [Some(60.0), Some(60.0), Some(20.0), None]);
        assert_eq!((phases.coverage(), phases.coverage_with_neighbours()), (0.5, 0.75));
        // One that comes later has it at once.
        let late = phases.recognise(&vector(&both(3)), &similarity);
        assert_eq!((late, phases.demand(late)), (4, Some(20.0)));
        // So have those that were kept.
        let kept: Phases = phases.iter().cloned().collect();
        assert_eq!((demands(&kept), kept.demand(late)), (demands(&phases), Some(20.0)));
        // Its own estimate counts as soon as there is one.
        phases.update(1, 1.0, 45.0, true);
        assert_eq!(phases.demand(1), Some(45.0));
    }
}
