//! K-means by hand: Lloyd's iteration over points in a CSV file, with the first k points as initial centres, until no
//! point changes its centre. Prints the centres, one `x\ty\t...` per line, and the number of iterations to stderr.

use baselines::{arguments, fail, with_simd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, RwLock};

/// The number of points per step: eight lanes of float64, twice.
const LANES: usize = 16;

/// Coordinates in groups of LANES points: all x, all y, ... of a group, then the next group.
struct Points {
    groups: Vec<f64>,
    count: usize,
    dimensions: usize,
}

impl Points {
    fn parse(text: &str, path: &str) -> Self {
        let mut rows = Vec::new();
        let mut dimensions = 0;
        for (number, line) in text.lines().enumerate() {
            let before = rows.len();
            for field in line.split(',') {
                rows.push(
                    field
                        .trim()
                        .parse::<f64>()
                        .unwrap_or_else(|_| fail(format!("{path}:{}: not a number: {field}", number + 1))),
                );
            }
            if number > 0 && rows.len() - before != dimensions {
                fail(format!("{path}:{}: {} fields, not {dimensions}", number + 1, rows.len() - before));
            }
            dimensions = rows.len() - before;
        }
        if rows.is_empty() {
            fail(format!("{path}: no points"));
        }
        let count = rows.len() / dimensions;
        let mut groups = vec![0.0; count.next_multiple_of(LANES) * dimensions];
        for point in 0..count {
            for dimension in 0..dimensions {
                groups[(point / LANES * dimensions + dimension) * LANES + point % LANES] =
                    rows[point * dimensions + dimension];
            }
        }
        Self { groups, count, dimensions }
    }

    fn group(&self, index: usize) -> &[[f64; LANES]] {
        &self.groups.as_chunks::<LANES>().0[index * self.dimensions..][..self.dimensions]
    }
}

/// One thread's share: its groups, the nearest centre of each point, and their sums.
struct Share {
    groups: std::ops::Range<usize>,
    nearest: Vec<[u32; LANES]>,
    sums: Vec<f64>,
    counts: Vec<u64>,
    changed: u64,
}

with_simd!(
    fn assign(points: &Points, centres: &[f64], share: &mut Share) {
        assign_inlined
    }
);

#[inline(always)]
fn assign_inlined(points: &Points, centres: &[f64], share: &mut Share) {
    let dimensions = points.dimensions;
    share.sums.fill(0.0);
    share.counts.fill(0);
    share.changed = 0;
    for (nearest_before, index) in share.nearest.iter_mut().zip(share.groups.clone()) {
        let group = points.group(index);
        let (mut least, mut nearest) = ([f64::INFINITY; LANES], [0u64; LANES]);
        if let &[x, y, z] = group {
            for (number, centre) in centres.as_chunks::<3>().0.iter().enumerate() {
                let mut distance = [0.0; LANES];
                for lane in 0..LANES {
                    let (a, b, c) = (x[lane] - centre[0], y[lane] - centre[1], z[lane] - centre[2]);
                    distance[lane] = a * a + b * b + c * c;
                }
                keep_nearer(&distance, number, &mut least, &mut nearest);
            }
        } else {
            for (number, centre) in centres.chunks_exact(dimensions).enumerate() {
                let mut distance = [0.0; LANES];
                for (coordinates, &centre) in group.iter().zip(centre) {
                    for lane in 0..LANES {
                        distance[lane] += (coordinates[lane] - centre) * (coordinates[lane] - centre);
                    }
                }
                keep_nearer(&distance, number, &mut least, &mut nearest);
            }
        }
        for lane in 0..LANES.min(points.count - index * LANES) {
            let centre = nearest[lane] as usize;
            share.changed += u64::from(nearest_before[lane] != centre as u32);
            nearest_before[lane] = centre as u32;
            share.counts[centre] += 1;
            for (sum, coordinates) in share.sums[centre * dimensions..][..dimensions].iter_mut().zip(group) {
                *sum += coordinates[lane];
            }
        }
    }
}

#[inline(always)]
fn keep_nearer(distance: &[f64; LANES], number: usize, least: &mut [f64; LANES], nearest: &mut [u64; LANES]) {
    for lane in 0..LANES {
        let nearer = distance[lane] < least[lane];
        least[lane] = if nearer { distance[lane] } else { least[lane] };
        nearest[lane] = if nearer { number as u64 } else { nearest[lane] };
    }
}

fn main() {
    let usage = "kmeans_hand FILE.csv [--k N] [--threads N] [--iterations MAX]";
    let ([path], [k, threads, most]) =
        arguments(usage, [("--k", "100"), ("--threads", "2"), ("--iterations", "1000000")]);
    let number = |text: &str| text.parse::<usize>().ok().filter(|&n| n > 0).unwrap_or_else(|| fail(usage));
    let (k, threads, most) = (number(&k), number(&threads), number(&most));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| fail(format!("{path}: {error}")));
    let points = Points::parse(&text, &path);
    if k > points.count {
        fail(format!("{path}: {k} centres need as many points, and there are {}", points.count));
    }
    let dimensions = points.dimensions;
    let first =
        (0..k * dimensions).map(|at| points.group(at / dimensions / LANES)[at % dimensions][at / dimensions % LANES]);
    let centres = RwLock::new(first.collect::<Vec<f64>>());
    let groups = points.count.div_ceil(LANES);
    let shares: Vec<Mutex<Share>> = (0..threads)
        .map(|me| {
            let groups = groups * me / threads..groups * (me + 1) / threads;
            let nearest = vec![[u32::MAX; LANES]; groups.len()];
            Mutex::new(Share { groups, nearest, sums: vec![0.0; k * dimensions], counts: vec![0; k], changed: 0 })
        })
        .collect();
    let (begin, end) = (Barrier::new(threads), Barrier::new(threads));
    let done = AtomicBool::new(false);
    let round = |me: usize| {
        assign(&points, &centres.read().expect("no panics"), &mut shares[me].lock().expect("no panics"));
        end.wait();
    };
    let iterations = std::thread::scope(|scope| {
        for me in 1..threads {
            let (round, begin, done) = (&round, &begin, &done);
            scope.spawn(move || {
                loop {
                    begin.wait();
                    if done.load(Relaxed) {
                        break;
                    }
                    round(me);
                }
            });
        }
        let mut iterations = 0;
        loop {
            begin.wait();
            round(0);
            iterations += 1;
            let shares: Vec<_> = shares.iter().map(|share| share.lock().expect("no panics")).collect();
            let mut centres = centres.write().expect("no panics");
            for centre in 0..k {
                // A centre without points stays.
                let count: u64 = shares.iter().map(|share| share.counts[centre]).sum();
                for at in (centre * dimensions..(centre + 1) * dimensions).filter(|_| count > 0) {
                    centres[at] = shares.iter().map(|share| share.sums[at]).sum::<f64>() / count as f64;
                }
            }
            if shares.iter().all(|share| share.changed == 0) || iterations == most {
                break;
            }
        }
        done.store(true, Relaxed);
        begin.wait();
        iterations
    });
    for centre in centres.into_inner().expect("no panics").chunks(dimensions) {
        println!("{}", centre.iter().map(|value| format!("{value:.6}")).collect::<Vec<_>>().join("\t"));
    }
    eprintln!("iterations {iterations}");
}
