//! K-means: `k` centres such that each point is near one, by Lloyd's iteration.
//!
//! Each of Lloyd's steps is a step of one job, whose state is the centres. Map finds the nearest centre of every
//! point and adds up the points of a block per centre. The engine then adds k sums per block. They are
//! [`BinnedSum`]s, which cost nothing for so few sums and do not depend on the order. A block holds the same points
//! for any number of workers, so the centres do not depend on it either. Workers read the points from the memory that
//! they share with the process that started them. The points lie in groups of sixteen, coordinate by coordinate, so
//! that sixteen distances are computed at once.

use gristmill::{Chunk, Control, Emit, Input, Job, MapReduce, Next, ProgramError, Records, Step, Summary};
use gristmill_os::vectors::{VectorWork, with_widest};

use crate::binned::BinnedSum;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::overflow;
use crate::sum::{self, Sum};

/// Points in a group.
const LANES: usize = 16;

/// The number of groups in a block. A block is one map task, some hundred microseconds with a hundred centres.
const BLOCK: usize = 256;

/// The least of the largest coordinates: the squares of their last digits are not yet subnormal.
const COORDINATE_MIN: f64 = 1e-137;

/// The choice of the first centres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// K-means++: each centre is a point, chosen with a probability proportional to its squared distance from the
    /// centres before it (Arthur and Vassilvitskii, 2007). The same seed gives the same centres.
    PlusPlus {
        /// The seed of the random numbers.
        seed: u64,
    },
    /// The first k points.
    First,
}

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct KMeans {
    /// The number of centres.
    pub k: usize,
    /// The choice of the first centres.
    pub start: Start,
    /// The maximum number of steps. There is always at least one.
    pub iterations_max: usize,
    /// The iteration ends when no centre moves by more than this fraction of the largest coordinate.
    pub tolerance: f64,
}

impl KMeans {
    /// Asks for `k` centres: k-means++ with seed 0, until the centres stand still to twelve digits or after 1,000
    /// steps.
    pub fn new(k: usize) -> KMeans {
        KMeans { k, start: Start::PlusPlus { seed: 0 }, iterations_max: 1000, tolerance: 1e-12 }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// One row per centre, in the order of the first centres.
    pub centres: Matrix,
    /// The number of points nearest to each centre before its last move.
    pub sizes: Vec<u64>,
    /// The sum of the squared distances of all points to those centres.
    pub inertia: f64,
    /// The number of steps done.
    pub iterations: usize,
    /// False when the steps ran out before the centres stood still.
    pub settled: bool,
    /// The longest move of a centre along one dimension, in the last step.
    pub moved: f64,
}

impl KMeans {
    /// Finds the centres of `points`, one row per point; `run` runs the job in steps ([`Job::iterate`]).
    ///
    /// # Errors
    /// No points; `k` zero or larger than the number of points; points whose squared distances overflow or vanish; an
    /// error of `run`.
    pub fn find<E: From<Error>>(
        &self,
        points: &Matrix,
        run: impl FnOnce(Job<'_, Points>, &[u8], &mut Control<'_, Points>) -> std::result::Result<Summary, E>,
    ) -> std::result::Result<(Clusters, Summary), E> {
        let k = self.k;
        if points.rows == 0 {
            return Err(Error::Question("there are no points".into()).into());
        }
        if k == 0 || k > points.rows {
            let n = points.rows;
            return Err(Error::Question(format!("{k} centres were asked for; {n} points can have 1 to {n}")).into());
        }
        let first = first_centres(points, k, self.start);
        let largest = points.values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if largest > 0.0 && largest < COORDINATE_MIN {
            let what = "the points are so close to zero that their squared distances vanish: scale the input";
            return Err(Error::Question(what.into()).into());
        }
        let state = bytes_of(&first.values);
        let (sizes, inertia) = (vec![0; k], 0.0);
        let mut clusters = Clusters { centres: first, sizes, inertia, iterations: 0, settled: false, moved: 0.0 };
        let program = Points::new(points, k);
        let mut overflows = false;
        let mut control = |step: &mut Step<'_, Points>| {
            if !clusters.take(step) {
                overflows = true;
                return Next::Stop;
            }
            clusters.iterations += 1;
            clusters.settled = clusters.moved <= self.tolerance * largest;
            step.set_state(&bytes_of(&clusters.centres.values));
            let over = clusters.settled || clusters.iterations >= self.iterations_max;
            if over { Next::Stop } else { Next::Input }
        };
        let summary = run(program.job()?, &state, &mut control)?;
        if overflows {
            return Err(overflow("a sum of coordinates or of squared distances").into());
        }
        Ok((clusters, summary))
    }
}

/// Encodes numbers as the state of a step.
fn bytes_of(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Clusters {
    /// Moves every centre to the mean of its points. A centre without points stays. Returns false if a sum overflows.
    fn take(&mut self, step: &Step<'_, Points>) -> bool {
        let d = self.centres.columns;
        let mut table = vec![0.0; self.sizes.len() * (d + 2)];
        step.for_each(|key, sum| table[key as usize] = sum.nearest());
        if table.iter().any(|sum| !sum.is_finite()) {
            return false;
        }
        (self.moved, self.inertia) = (0.0, 0.0);
        let rows = table.chunks_exact(d + 2).zip(self.centres.values.chunks_exact_mut(d));
        for ((sums, centre), size) in rows.zip(&mut self.sizes) {
            let count = sums[d];
            *size = count as u64;
            self.inertia += sums[d + 1];
            if count > 0.0 {
                for (place, sum) in centre.iter_mut().zip(sums) {
                    let mean = sum / count;
                    self.moved = self.moved.max((mean - *place).abs());
                    *place = mean;
                }
            }
        }
        true
    }
}

/// The points as the workers read them.
pub struct Points {
    /// Groups of points. A group holds all first coordinates, then all second ones, and so on. The last group is
    /// padded with zeros.
    groups: Vec<[f64; LANES]>,
    count: usize,
    dimensions: usize,
    /// The number of centres.
    k: usize,
}

impl Points {
    fn new(points: &Matrix, k: usize) -> Points {
        let (count, dimensions) = (points.rows, points.columns);
        let mut groups = vec![[0.0; LANES]; count.div_ceil(LANES) * dimensions];
        for (number, row) in points.values.chunks_exact(dimensions).enumerate() {
            let group = &mut groups[number / LANES * dimensions..][..dimensions];
            group.iter_mut().zip(row).for_each(|(coordinates, value)| coordinates[number % LANES] = *value);
        }
        Points { groups, count, dimensions, k }
    }

    /// Makes a job with one record, which is one task, per block: the number of its first group.
    fn job(&self) -> Result<Job<'_, Points>> {
        let groups = self.count.div_ceil(LANES) as u64;
        let blocks: Vec<u8> = (0..groups).step_by(BLOCK).flat_map(u64::to_le_bytes).collect();
        let input = Input::bytes("the points", &blocks)?;
        // The groups, and the points they were made from.
        let points_bytes = 2 * size_of_val(&self.groups[..]);
        Ok(Job::new(self, input).holds(points_bytes, 0).records(Records::Fixed(8)).split_bytes(8))
    }

    /// The number of sums per centre: its coordinates, the count of its points, and their squared distances.
    fn sums(&self) -> usize {
        self.dimensions + 2
    }
}

impl MapReduce for Points {
    /// Centre * (dimensions + 2) + dimension. The last two are the number of points nearest to the centre and the sum
    /// of their squared distances.
    type Key = u32;
    type Value = BinnedSum;

    fn keys(&self) -> Option<usize> {
        Some(self.k * self.sums())
    }

    fn combiner(&self) -> Option<impl Fn(BinnedSum, BinnedSum) -> BinnedSum> {
        Some(sum::add)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, BinnedSum>) -> Result<(), ProgramError> {
        let centres: Vec<f64> =
            chunk.state().as_chunks::<8>().0.iter().map(|place| f64::from_le_bytes(*place)).collect();
        let mut sums = vec![0.0; self.k * self.sums()];
        for block in chunk.bytes().as_chunks::<8>().0 {
            let first = u64::from_le_bytes(*block) as usize;
            sums.fill(0.0);
            with_widest(AddPoints { points: self, first, centres: &centres, sums: &mut sums });
            // Rounding within a block is the same in every run, and blocks are only added up as binned sums.
            for (first, sums) in (0..).step_by(self.sums()).zip(sums.chunks_exact(self.sums())) {
                if sums[self.dimensions] > 0.0 {
                    (first..).zip(sums).for_each(|(key, sum)| out.emit(key, BinnedSum::fraction(*sum)));
                }
            }
        }
        Ok(())
    }
}

/// Adds the points of a block to the sums of their nearest centres, compiled for the current processor. It contains
/// no closure, because a closure would be compiled once for all processors.
struct AddPoints<'a> {
    points: &'a Points,
    /// The first group of the block.
    first: usize,
    /// The centres, row by row.
    centres: &'a [f64],
    sums: &'a mut [f64],
}

impl VectorWork for AddPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddPoints { points, first, centres, sums } = self;
        let Points { count, dimensions: d, .. } = *points;
        let groups = points.groups[first * d..].chunks_exact(d).take(BLOCK);
        for (start, group) in (first * LANES..).step_by(LANES).zip(groups) {
            let nearest = match d {
                1 => nearest::<1>(group, centres),
                2 => nearest::<2>(group, centres),
                3 => nearest::<3>(group, centres),
                4 => nearest::<4>(group, centres),
                _ => nearest_any(group, centres),
            };
            nearest.add(LANES.min(count - start), group, sums);
        }
    }
}

/// Finds the nearest centres of a group of points of `D` dimensions.
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

/// Finds them for any number of dimensions.
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
        Start::PlusPlus { seed } => with_widest(|| plus_plus(points, k, Random(seed))),
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
        // Takes the point at which a random part of the total is reached, or any point if all points are centres
        // already.
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
