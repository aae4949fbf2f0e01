//! The behaviour of a program alone: a sequence of segments, the same in each execution with the same input.

use fastrand::Rng;
use gristmill_schedule::ProgramWork;

/// The shape of a synthetic program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The mean bandwidth alone, in requests per microsecond.
    pub bandwidth: f64,
    /// The number of different pieces of code, each with its own demand.
    pub phases: usize,
    /// The time alone.
    pub alone_us: f64,
    /// The spread of the phases' demands: the standard deviation of their logarithms.
    pub spread: f64,
    /// The number of threads that compute at the same time.
    pub threads: usize,
    /// The share of the time that the program waits for input and output, in pieces.
    pub waits: f64,
    /// The most that one processor demands.
    pub core_peak: f64,
}

/// A program with one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    codes: Vec<Code>,
    segments: Vec<Segment>,
    /// The number of threads that compute at the same time.
    pub threads: usize,
}

/// A piece of code.
#[derive(Clone, Debug, PartialEq)]
struct Code {
    /// Instructions per microsecond, alone.
    rate: f64,
    /// The addresses at which samples fall, with the cumulative sums of their shares.
    blocks: Vec<(u64, f64)>,
}

/// A stretch of time in one piece of code or in a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    alone_us: f64,
    /// The code; `None` for a wait for input or output.
    code: Option<usize>,
    demand: f64,
}

/// The number of blocks in which samples of one piece of code fall, and of blocks that all code of the program
/// shares.
const BLOCKS: usize = 8;
const BLOCKS_SHARED: usize = 2;
/// The spread of demands between visits to the same code, which depend on the data.
const VISITS_SPREAD: f64 = 0.1;
/// The share of segments that are followed by the successor of their code.
const HABIT: f64 = 0.8;
/// The length of a wait.
const WAIT_US: f64 = 60_000.0;

impl Trace {
    /// Makes a synthetic program.
    pub fn new(shape: &Shape, rng: &mut Rng) -> Trace {
        let count = shape.phases.max(1);
        // 1. Pieces of code, each with a demand and a successor.
        let demands: Vec<f64> = (0..count).map(|_| (shape.spread * normal(rng)).exp()).collect();
        let codes: Vec<Code> = (0..count)
            .map(|at| {
                let shares: Vec<f64> = (0..BLOCKS + BLOCKS_SHARED).map(|_| 0.5 + rng.f64()).collect();
                let all: f64 = shares.iter().sum();
                let mut sum = 0.0;
                let blocks = shares.iter().enumerate().map(|(block, share)| {
                    sum += share / all;
                    let base = if block < BLOCKS_SHARED { 0 } else { 4096 * (at as u64 + 1) };
                    (base + 64 * block as u64, sum)
                });
                Code { blocks: blocks.collect(), rate: 1000.0 * (0.5 + rng.f64()) }
            })
            .collect();
        let successors: Vec<usize> = (0..count).map(|_| rng.usize(0..count)).collect();
        // 2. Segments, until the time is filled.
        let mean_us = (shape.alone_us / (2.0 * count as f64)).clamp(50_000.0, 800_000.0);
        let (mut segments, mut left_us, mut code) = (Vec::new(), shape.alone_us, 0);
        while left_us > 0.0 {
            let alone_us = (mean_us * (0.4 + 1.2 * rng.f64())).min(left_us);
            left_us -= alone_us;
            let demand = demands[code] * (VISITS_SPREAD * normal(rng)).exp();
            segments.push(Segment { alone_us, code: Some(code), demand });
            code = if rng.f64() < HABIT { successors[code] } else { rng.usize(0..count) };
        }
        // 3. Scale to the requested mean. No segment demands more than a processor can.
        let limit = shape.core_peak * shape.threads as f64 * 0.95;
        for _ in 0..8 {
            let sum: f64 = segments.iter().map(|segment| segment.demand * segment.alone_us).sum();
            let factor = shape.bandwidth * shape.alone_us / sum;
            segments.iter_mut().for_each(|segment| segment.demand = (segment.demand * factor).min(limit));
        }
        // 4. Waits between pieces of work.
        if shape.waits > 0.0 {
            segments = with_waits(&segments, shape.waits);
        }
        Trace { codes, segments, threads: shape.threads.max(1) }
    }

    /// Makes a program with a constant demand.
    pub fn steady(bandwidth: f64, alone_us: f64) -> Trace {
        let code = Code { rate: 1000.0, blocks: vec![(bandwidth.to_bits() >> 32, 1.0)] };
        let segments = vec![Segment { alone_us, code: Some(0), demand: bandwidth }];
        Trace { codes: vec![code], segments, threads: 1 }
    }

    /// The time alone.
    pub fn alone_us(&self) -> f64 {
        self.segments.iter().map(|segment| segment.alone_us).sum()
    }

    /// Advances by this many instructions.
    pub fn go_on(&self, cursor: &mut Cursor, instructions: f64) {
        let mut left = instructions;
        while left > 1e-6 {
            let rate = match self.segments.get(cursor.segment) {
                Some(Segment { code: Some(code), .. }) => self.rate(*code),
                // A wait executes nothing.
                Some(segment) => {
                    self.piece(cursor, segment.alone_us);
                    continue;
                }
                None => return,
            };
            match self.piece(cursor, left / rate) {
                Some(piece) => left -= piece.alone_us * rate,
                None => return,
            }
        }
    }

    /// Returns the remaining work at a place.
    pub fn left(&self, from: Cursor) -> ProgramWork {
        let (mut cursor, mut alone_us, mut requests) = (from, 0.0, 0.0);
        while let Some(piece) = self.piece(&mut cursor, f64::INFINITY) {
            alone_us += piece.alone_us;
            requests += piece.alone_us * piece.demand;
        }
        ProgramWork { alone_us, requests, threads: self.threads }
    }

    /// Returns the mean demand of the next `alone_us` after a place.
    pub fn demand(&self, from: Cursor, alone_us: f64) -> f64 {
        let (mut cursor, mut left_us, mut requests) = (from, alone_us, 0.0);
        while let Some(piece) = self.piece(&mut cursor, left_us) {
            left_us -= piece.alone_us;
            requests += piece.alone_us * piece.demand;
            if left_us <= 0.0 {
                break;
            }
        }
        requests / (alone_us - left_us).max(f64::MIN_POSITIVE)
    }

    /// Returns the demand at a place; `None` at the end and in a wait.
    pub fn demand_now(&self, at: Cursor) -> Option<f64> {
        self.segments.get(at.segment).filter(|segment| segment.code.is_some()).map(|segment| segment.demand)
    }

    /// Returns true if the place is in a wait.
    pub fn is_waiting(&self, at: Cursor) -> bool {
        self.segments.get(at.segment).is_some_and(|segment| segment.code.is_none())
    }

    /// Returns true if the place is the end.
    pub fn is_over(&self, at: Cursor) -> bool {
        at.segment >= self.segments.len()
    }

    /// Advances by one piece within a segment, no longer than `alone_us`. Returns `None` at the end.
    pub(super) fn piece(&self, cursor: &mut Cursor, alone_us: f64) -> Option<TracePiece> {
        let segment = self.segments.get(cursor.segment)?;
        let rest_us = segment.alone_us - cursor.offset_us;
        let taken_us = if alone_us >= rest_us {
            *cursor = Cursor { segment: cursor.segment + 1, offset_us: 0.0 };
            rest_us
        } else {
            cursor.offset_us += alone_us;
            alone_us
        };
        Some(TracePiece { alone_us: taken_us, demand: segment.demand, code: segment.code })
    }

    /// Returns the instructions per microsecond alone.
    pub(super) fn rate(&self, code: usize) -> f64 {
        self.codes[code].rate
    }

    /// Returns the address of a sample of this code.
    pub(super) fn sample(&self, code: usize, rng: &mut Rng) -> u64 {
        let (blocks, drawn) = (&self.codes[code].blocks, rng.f64());
        blocks[blocks.partition_point(|(_, sum)| *sum < drawn).min(blocks.len() - 1)].0
    }
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cursor {
    segment: usize,
    offset_us: f64,
}

/// A part of a segment.
pub(super) struct TracePiece {
    pub alone_us: f64,
    pub demand: f64,
    pub code: Option<usize>,
}

/// Returns the same work with a wait after each piece, such that waits take this share of the time.
fn with_waits(segments: &[Segment], share: f64) -> Vec<Segment> {
    let work_us = WAIT_US * (1.0 - share) / share;
    let mut mixed = Vec::new();
    for segment in segments {
        let mut left_us = segment.alone_us;
        while left_us > 0.0 {
            let alone_us = work_us.min(left_us);
            left_us -= alone_us;
            mixed.push(Segment { alone_us, ..*segment });
            mixed.push(Segment { alone_us: WAIT_US * alone_us / work_us, code: None, demand: 0.0 });
        }
    }
    mixed
}

/// Returns a number from the standard normal distribution.
pub(super) fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    radius * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape =
        Shape { bandwidth: 40.0, phases: 30, alone_us: 10e6, spread: 0.6, threads: 1, waits: 0.0, core_peak: 80.0 };

    #[test]
    fn a_trace_has_the_requested_time_and_mean_demand() {
        for (seed, bandwidth) in [(1, 0.5), (2, 20.0), (3, 52.1)] {
            let trace = Trace::new(&Shape { bandwidth, ..SHAPE }, &mut Rng::with_seed(seed));
            assert!((trace.alone_us() - 10e6).abs() < 1.0);
            let requests = trace.left(Cursor::default()).requests;
            assert!((requests / 10e6 / bandwidth - 1.0).abs() < 0.01, "{}", requests / 10e6);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_program() {
        let [one, same, other] = [7, 7, 8].map(|seed| Trace::new(&SHAPE, &mut Rng::with_seed(seed)));
        assert!(one == same && one != other);
    }

    #[test]
    fn the_demand_ahead_is_the_mean_of_the_next_segments() {
        let trace = Trace::new(&SHAPE, &mut Rng::with_seed(3));
        assert!(
            (trace.demand(Cursor::default(), 20e6) - trace.left(Cursor::default()).requests / trace.alone_us()).abs()
                < 1e-6
        );
        assert_eq!(trace.demand(Cursor::default(), 1.0), trace.demand_now(Cursor::default()).expect("it has begun"));
    }

    #[test]
    fn waits_take_the_requested_share() {
        let trace = Trace::new(&Shape { waits: 0.75, ..SHAPE }, &mut Rng::with_seed(3));
        assert!((trace.alone_us() / 40e6 - 1.0).abs() < 0.01, "{}", trace.alone_us());
    }
}
