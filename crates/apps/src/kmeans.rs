//! K-means: `k` centres such that each point is near one, by Lloyd's iteration.
//!
//! Each step is a job. Its map finds the nearest centre of every point and adds the points of a chunk up per centre;
//! what remains for the engine is k sums per chunk. Points lie in memory in groups of sixteen, coordinate by coordinate,
//! so that sixteen distances are computed at once.

use gristmill::{Combine, Emit, Input, Job, MapReduce, Order, Outcome, Output, Records, Split};
use pulp::{Arch, NullaryFnOnce};

use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Points in a group.
const LANES: usize = 16;

/// Where the first centres come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// K-means++: each is a point, chosen with a probability proportional to its squared distance from the centres before
    /// it (Arthur and Vassilvitskii, 2007). The same seed gives the same centres.
    PlusPlus {
        /// Seed of the random numbers.
        seed: u64,
    },
    /// The first k points.
    First,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct KMeans {
    /// Number of centres.
    pub k: usize,
    /// Where they start.
    pub start: Start,
    /// Steps at most.
    pub iterations_max: usize,
    /// The iteration ends when no centre moves by more than this part of the largest coordinate. Sums of different order
    /// differ in the last digits, so 0 may never be reached.
    pub tolerance: f64,
}

impl KMeans {
    /// `k` centres, started by k-means++ with seed 0, until they stand still to twelve digits or 1,000 steps are done.
    pub fn new(k: usize) -> KMeans {
        KMeans { k, start: Start::PlusPlus { seed: 0 }, iterations_max: 1000, tolerance: 1e-12 }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// One row per centre, in the order in which they started.
    pub centres: Matrix,
    /// Points nearest to each centre before it moved for the last time.
    pub sizes: Vec<u64>,
    /// Sum of the squared distances of all points to those centres.
    pub inertia: f64,
    /// Steps done.
    pub iterations: usize,
    /// False when the steps ran out before the centres stood still.
    pub settled: bool,
}

/// Points as the map function reads them.
pub struct Points {
    input: Input,
    count: usize,
    dimensions: usize,
    largest: f64,
    first: Matrix,
}

impl KMeans {
    /// Finds the centres of `points`, one row each; `run` runs each step.
    ///
    /// # Errors
    /// No points, `k` zero or larger than the number of points; or what `run` gives.
    pub fn find<E: From<Error>>(
        &self,
        points: &Matrix,
        mut run: impl for<'s> FnMut(Job<'s, Step<'s>>) -> std::result::Result<Outcome<Step<'s>>, E>,
    ) -> std::result::Result<Clusters, E> {
        let k = self.k;
        if points.rows == 0 {
            return Err(Error::Question("there are no points".into()).into());
        }
        if k == 0 || k > points.rows {
            let n = points.rows;
            return Err(Error::Question(format!("{k} centres were asked for; {n} points can have 1 to {n}")).into());
        }
        let prepared = Points::new(points, first_centres(points, k, self.start))?;
        let mut clusters = Clusters {
            centres: prepared.first.clone(),
            sizes: vec![0; k],
            inertia: 0.0,
            iterations: 0,
            settled: false,
        };
        while !clusters.settled && clusters.iterations < self.iterations_max {
            let step = Step { points: &prepared, centres: &clusters.centres.values };
            let job = Job::new(&step, prepared.input.clone());
            let (sums, _) = run(job.records(Records::Fixed(prepared.group_bytes())).order(Order::Unordered))?;
            let moved = clusters.take(&sums);
            clusters.iterations += 1;
            clusters.settled = moved <= self.tolerance * prepared.largest;
        }
        Ok(clusters)
    }
}

impl Clusters {
    /// Moves every centre to the mean of its points; returns the longest way along one dimension. A centre that lost all
    /// its points stays where it is.
    fn take(&mut self, sums: &Output<u32, f64>) -> f64 {
        let d = self.centres.columns;
        let mut table = vec![0.0; self.sizes.len() * (d + 2)];
        sums.iter().for_each(|(key, sum)| table[key as usize] = sum);
        let mut moved: f64 = 0.0;
        self.inertia = 0.0;
        let rows = table.chunks_exact(d + 2).zip(self.centres.values.chunks_exact_mut(d));
        for ((sums, centre), size) in rows.zip(&mut self.sizes) {
            let count = sums[d];
            *size = count as u64;
            self.inertia += sums[d + 1];
            if count > 0.0 {
                for (place, sum) in centre.iter_mut().zip(sums) {
                    let mean = sum / count;
                    moved = moved.max((mean - *place).abs());
                    *place = mean;
                }
            }
        }
        moved
    }
}

impl Points {
    /// Puts the points into groups, the last one filled up with zeros.
    fn new(points: &Matrix, first: Matrix) -> Result<Points> {
        let (count, dimensions) = (points.rows, points.columns);
        let mut bytes = vec![0; count.next_multiple_of(LANES) * dimensions * 8];
        for (number, row) in points.values.chunks_exact(dimensions).enumerate() {
            for (dimension, value) in row.iter().enumerate() {
                let at = (number / LANES * dimensions + dimension) * LANES + number % LANES;
                bytes[at * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let input = Input::bytes("the points", &bytes)?;
        let largest = points.values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        Ok(Points { input, count, dimensions, largest, first })
    }

    fn group_bytes(&self) -> usize {
        LANES * self.dimensions * 8
    }
}

/// One step: the sums, the number, and the squared distances of the points nearest to each centre.
pub struct Step<'p> {
    points: &'p Points,
    /// Row after row.
    centres: &'p [f64],
}

impl MapReduce for Step<'_> {
    /// Centre * (dimensions + 2) + dimension; then the number of points, and the sum of their squared distances.
    type Key = u32;
    type Value = f64;
    const COMBINE: Option<Combine<f64>> = Some(|a, b| a + b);

    fn keys(&self) -> Option<usize> {
        Some(self.centres.len() / self.points.dimensions * (self.points.dimensions + 2))
    }

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u32, f64>) {
        let d = self.points.dimensions;
        let mut sums = vec![0.0; self.centres.len() / d * (d + 2)];
        Arch::new().dispatch(AddPoints { step: self, split, sums: &mut sums });
        for (first, sums) in (0..).step_by(d + 2).zip(sums.chunks_exact(d + 2)) {
            if sums[d] > 0.0 {
                (first..).zip(sums).for_each(|(key, sum)| out.emit(key, *sum));
            }
        }
    }
}

/// Adds the points of a split to the sums of their nearest centres, compiled for the processor at hand. No closure in it:
/// one would be compiled once, for every processor.
struct AddPoints<'a> {
    step: &'a Step<'a>,
    split: &'a Split<'a>,
    sums: &'a mut [f64],
}

impl NullaryFnOnce for AddPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let AddPoints { step, split, sums } = self;
        let Points { count, dimensions: d, .. } = *step.points;
        let mut group = vec![[0.0; LANES]; d];
        let mut start = split.offset() as usize / step.points.group_bytes() * LANES;
        for bytes in split.bytes().chunks_exact(step.points.group_bytes()) {
            for (value, bytes) in group.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
                *value = f64::from_le_bytes(*bytes);
            }
            let nearest = match d {
                1 => nearest::<1>(&group, step.centres),
                2 => nearest::<2>(&group, step.centres),
                3 => nearest::<3>(&group, step.centres),
                4 => nearest::<4>(&group, step.centres),
                _ => nearest_any(&group, step.centres),
            };
            nearest.add(LANES.min(count - start), &group, sums);
            start += LANES;
        }
    }
}

/// The nearest centres of a group of points of `D` dimensions.
#[inline(always)]
fn nearest<const D: usize>(group: &[[f64; LANES]], centres: &[f64]) -> Nearest {
    let group: &[[f64; LANES]; D] = &group.as_chunks().0[0];
    let mut nearest = Nearest::new();
    for (number, centre) in centres.as_chunks::<D>().0.iter().enumerate() {
        let mut distances = [0.0; LANES];
        for dimension in 0..D {
            for lane in 0..LANES {
                let way = group[dimension][lane] - centre[dimension];
                distances[lane] += way * way;
            }
        }
        nearest.consider(number, &distances);
    }
    nearest
}

/// The same for any number of dimensions.
#[inline(always)]
fn nearest_any(group: &[[f64; LANES]], centres: &[f64]) -> Nearest {
    let mut nearest = Nearest::new();
    for (number, centre) in centres.chunks_exact(group.len()).enumerate() {
        let mut distances = [0.0; LANES];
        for (coordinates, place) in group.iter().zip(centre) {
            for lane in 0..LANES {
                let way = coordinates[lane] - place;
                distances[lane] += way * way;
            }
        }
        nearest.consider(number, &distances);
    }
    nearest
}

/// The nearest centre so far of each point of a group, and its squared distance.
struct Nearest {
    centres: [u64; LANES],
    distances: [f64; LANES],
}

impl Nearest {
    #[inline(always)]
    fn new() -> Nearest {
        Nearest { centres: [0; LANES], distances: [f64::INFINITY; LANES] }
    }

    #[inline(always)]
    fn consider(&mut self, centre: usize, distances: &[f64; LANES]) {
        for (lane, distance) in distances.iter().enumerate() {
            let nearer = *distance < self.distances[lane];
            self.distances[lane] = if nearer { *distance } else { self.distances[lane] };
            self.centres[lane] = if nearer { centre as u64 } else { self.centres[lane] };
        }
    }

    #[inline(always)]
    fn add(&self, points: usize, group: &[[f64; LANES]], sums: &mut [f64]) {
        let d = group.len();
        for lane in 0..points {
            let sums = &mut sums[self.centres[lane] as usize * (d + 2)..][..d + 2];
            for (sum, coordinates) in sums.iter_mut().zip(group) {
                *sum += coordinates[lane];
            }
            sums[d] += 1.0;
            sums[d + 1] += self.distances[lane];
        }
    }
}

fn first_centres(points: &Matrix, k: usize, start: Start) -> Matrix {
    let d = points.columns;
    let values = match start {
        Start::First => points.values[..k * d].to_vec(),
        Start::PlusPlus { seed } => Arch::new().dispatch(|| plus_plus(points, k, Random(seed))),
    };
    Matrix { rows: k, columns: d, values }
}

#[inline(always)]
fn plus_plus(points: &Matrix, k: usize, mut random: Random) -> Vec<f64> {
    let d = points.columns;
    let mut centres = Vec::with_capacity(k * d);
    let mut distances = vec![f64::INFINITY; points.rows];
    let mut chosen = (random.next() * points.rows as f64) as usize;
    loop {
        let centre = points.row(chosen.min(points.rows - 1));
        centres.extend_from_slice(centre);
        if centres.len() == k * d {
            return centres;
        }
        let mut total = 0.0;
        for (distance, point) in distances.iter_mut().zip(points.values.chunks_exact(d)) {
            let way: f64 = point.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
            *distance = distance.min(way);
            total += *distance;
        }
        // Where a random part of the total is reached; any point will do when all points are centres already.
        let mut left = random.next() * total;
        chosen = distances
            .iter()
            .position(|distance| {
                left -= distance;
                left < 0.0
            })
            .unwrap_or(points.rows - 1);
    }
}

/// SplitMix64 (Steele, Lea, and Flood, 2014): the same numbers on every machine and in every version.
struct Random(u64);

impl Random {
    /// A number in 0..1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
