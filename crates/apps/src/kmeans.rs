//! K-means: `k` centres such that each point is near one, by Lloyd's iteration.
//!
//! Each of Lloyd's steps is a step of one job, whose state is the centres. Map finds the nearest centre of every point and
//! adds the points of a block up per centre; what remains for the engine is k sums per block, which are the same in whatever order
//! ([`BinnedSum`], which costs nothing for so few). So are the centres: a block is the same points for any number of workers. Workers see the points through
//! the memory that they share with the process that started them: in groups of sixteen, coordinate by coordinate, so that
//! sixteen distances are computed at once.

use gristmill::{Combine, Control, Emit, Input, Job, MapReduce, Next, Records, Split, Step, Summary};
use gristmill_os::vectors::{Work, with_widest};

use crate::binned::BinnedSum;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::sum::{self, Sum};

/// Points in a group.
const LANES: usize = 16;

/// Groups in a block, which is one map task: some hundred microseconds with a hundred centres.
const BLOCK: usize = 256;

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
    /// Steps at most; there is always one.
    pub iterations_max: usize,
    /// The iteration ends when no centre moves by more than this part of the largest coordinate.
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

impl KMeans {
    /// Finds the centres of `points`, one row each; `run` runs the job in steps: [`Job::iterate`].
    ///
    /// # Errors
    /// No points, `k` zero or larger than the number of points; or what `run` gives.
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
        let state = bytes_of(&first.values);
        let mut clusters = Clusters { centres: first, sizes: vec![0; k], inertia: 0.0, iterations: 0, settled: false };
        let program = Points::new(points, k);
        let mut overflows = false;
        let mut control = |step: &mut Step<'_, Points>| {
            let Some(moved) = clusters.take(step) else {
                overflows = true;
                return Next::Stop;
            };
            clusters.iterations += 1;
            clusters.settled = moved <= self.tolerance * largest;
            step.set_state(&bytes_of(&clusters.centres.values));
            let over = clusters.settled || clusters.iterations >= self.iterations_max;
            if over { Next::Stop } else { Next::Input }
        };
        let summary = run(program.job()?, &state, &mut control)?;
        if overflows {
            let what = "the points are so far from each other that their squared distances overflow: scale them";
            return Err(Error::Question(what.into()).into());
        }
        Ok((clusters, summary))
    }
}

/// Numbers as the state of a step.
fn bytes_of(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Clusters {
    /// Moves every centre to the mean of its points; returns the longest way along one dimension. A centre that lost all
    /// its points stays where it is. `None` if a sum overflows.
    fn take(&mut self, step: &Step<'_, Points>) -> Option<f64> {
        let d = self.centres.columns;
        let mut table = vec![0.0; self.sizes.len() * (d + 2)];
        step.for_each(|key, sum| table[key as usize] = sum.nearest());
        if table.iter().any(|sum| !sum.is_finite()) {
            return None;
        }
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
        Some(moved)
    }
}

/// Points as the workers see them.
pub struct Points {
    /// Group after group; in a group all first coordinates, then all second ones. The last group is filled up with zeros.
    groups: Vec<[f64; LANES]>,
    count: usize,
    dimensions: usize,
    /// Number of centres.
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

    /// One record, and one task, for each block: the number of its first group.
    fn job(&self) -> Result<Job<'_, Points>> {
        let groups = self.count.div_ceil(LANES) as u64;
        let blocks: Vec<u8> = (0..groups).step_by(BLOCK).flat_map(u64::to_le_bytes).collect();
        let input = Input::bytes("the points", &blocks)?;
        // The groups, and the points that they were made of.
        let points_bytes = 2 * size_of_val(&self.groups[..]);
        Ok(Job::new(self, input).holds(points_bytes).records(Records::Fixed(8)).split_bytes(8))
    }

    /// Sums of a centre: its coordinates, the number of its points, and their squared distances.
    fn sums(&self) -> usize {
        self.dimensions + 2
    }
}

impl MapReduce for Points {
    /// Centre * (dimensions + 2) + dimension; then the number of points nearest to it, and the sum of their squared
    /// distances.
    type Key = u32;
    type Value = BinnedSum;
    const COMBINE: Option<Combine<BinnedSum>> = Some(sum::add);

    fn keys(&self) -> Option<usize> {
        Some(self.k * self.sums())
    }

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u32, BinnedSum>) {
        let centres: Vec<f64> =
            split.state().as_chunks::<8>().0.iter().map(|place| f64::from_le_bytes(*place)).collect();
        let mut sums = vec![0.0; self.k * self.sums()];
        for block in split.bytes().as_chunks::<8>().0 {
            let first = u64::from_le_bytes(*block) as usize;
            sums.fill(0.0);
            with_widest(AddPoints { points: self, first, centres: &centres, sums: &mut sums });
            // What is rounded within a block is the same in every run; blocks are not added up before they are sums.
            for (first, sums) in (0..).step_by(self.sums()).zip(sums.chunks_exact(self.sums())) {
                if sums[self.dimensions] > 0.0 {
                    (first..).zip(sums).for_each(|(key, sum)| out.emit(key, BinnedSum::fraction(*sum)));
                }
            }
        }
    }
}

/// Adds the points of a block to the sums of their nearest centres, compiled for the processor at hand. No closure in it:
/// one would be compiled once, for every processor.
struct AddPoints<'a> {
    points: &'a Points,
    /// The first group of the block.
    first: usize,
    /// Row after row.
    centres: &'a [f64],
    sums: &'a mut [f64],
}

impl Work for AddPoints<'_> {
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
