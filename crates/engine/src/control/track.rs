//! The track of a worker: how long it was in each phase, in each of some hundred stretches of time.
//!
//! A worker adds to its own track whenever it enters a phase, and the coordinator reads the track when the worker has
//! ended. Only a job with a timeline has tracks ([`JobWord::timeline`](crate::Job::timeline)).
//!
//! ```text
//!  | open phase + 1 | shape | born ns | - | half 0: bucket 0, bucket 1, ... | half 1: bucket 0, bucket 1, ... |
//!
//!  bucket:  a word for each phase: the nanoseconds of it between number * width and (number + 1) * width
//!  shape:   the logarithm of the width, times 2, plus the half in use
//! ```
//!
//! 1. The memory is fixed. When time runs past the last bucket, two buckets become one: the worker fills the other half
//!    with the sums, then switches to it by storing the shape. So a track has between 128 and 256 buckets in use, for
//!    any length of job.
//! 2. Phases follow each other without a gap, so the sum of all buckets says up to which time the track goes. Time is
//!    added in its order.
//! 3. A worker may be killed between any two stores. Then the track ends where rule 2 says, the open phase lasted from
//!    there to the death, and a switch that was not completed has left the other half as it was.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::counters::{PHASES, Phase};

const BUCKETS: usize = 256;
const HALF_WORDS: usize = BUCKETS * PHASES.len();
const HEAD_WORDS: usize = 4;
const OPEN: usize = 0;
const SHAPE: usize = 1;
const BORN: usize = 2;
/// The words of a track.
pub(crate) const TRACK_WORDS: usize = HEAD_WORDS + 2 * HALF_WORDS;
/// The logarithm of the width in nanoseconds at first: 256 buckets of 8 microseconds.
const FIRST_SHIFT: u32 = 13;

/// The end of a track that its worker writes.
pub(crate) struct Recorder<'p> {
    words: &'p [AtomicU64],
    start_ns: u64,
    shift: u32,
    half: usize,
    /// Time before it, since the start, has been moved to other phases.
    moved_until_ns: u64,
}

/// The content of a track.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The time of birth, since the start.
    pub born_ns: u64,
    pub width_ns: u64,
    /// For each bucket, the nanoseconds of each phase, up to the last bucket with any.
    pub buckets: Vec<[u64; PHASES.len()]>,
    /// The phase that the worker was in when it was killed.
    pub open: Option<Phase>,
}

impl<'p> Recorder<'p> {
    /// Begins the track of a worker in [`Phase::Start`], which began at `start_ns`.
    pub fn new(words: &'p [AtomicU64], start_ns: u64) -> Recorder<'p> {
        let recorder = Recorder { words, start_ns, shift: FIRST_SHIFT, half: 0, moved_until_ns: 0 };
        recorder.set_shape();
        words[BORN].store(gristmill_os::clock::monotonic_ns() - start_ns + 1, Ordering::Relaxed);
        recorder.set_open(Some(Phase::Start));
        recorder
    }

    /// Adds a phase that lasted from one time to another, where the next phase begins.
    #[cold]
    #[inline(never)]
    pub fn pass(&mut self, phase: Phase, from_ns: u64, to_ns: u64, next: Phase) {
        let (mut from_ns, to_ns) = (from_ns - self.start_ns, to_ns - self.start_ns);
        while to_ns > (BUCKETS as u64) << self.shift {
            self.halve();
        }
        while from_ns < to_ns {
            let bucket = from_ns >> self.shift;
            let end_ns = to_ns.min((bucket + 1) << self.shift);
            let word = self.word(self.half, bucket as usize, phase);
            word.store(word.load(Ordering::Relaxed) + (end_ns - from_ns), Ordering::Relaxed);
            from_ns = end_ns;
        }
        self.set_open(Some(next));
    }

    /// Notes that the worker ends.
    pub fn end(&self) {
        self.set_open(None);
    }

    /// Moves `ns` from one phase to another. They were spent at some time after the last move, so each bucket since
    /// then gives its share.
    pub fn move_time(&mut self, from: Phase, to: Phase, ns: u64, now_ns: u64) {
        let now_ns = now_ns - self.start_ns;
        let buckets = |from_ns: u64| (from_ns >> self.shift) as usize..(now_ns.div_ceil(1 << self.shift)) as usize;
        let time = |bucket: usize| self.word(self.half, bucket, from).load(Ordering::Relaxed);
        let since = buckets(self.moved_until_ns);
        let (since, mut left_ns) = match since.clone().map(time).sum::<u64>() {
            total_ns if total_ns >= ns => (since, total_ns),
            _ => (buckets(0), buckets(0).map(time).sum()),
        };
        let mut ns = ns.min(left_ns);
        for bucket in since {
            let there_ns = time(bucket);
            let moved_ns = match left_ns {
                0 => 0,
                _ => (u128::from(there_ns) * u128::from(ns) / u128::from(left_ns)) as u64,
            };
            // In this order: see rule 2.
            self.word(self.half, bucket, from).store(there_ns - moved_ns, Ordering::Relaxed);
            let word = self.word(self.half, bucket, to);
            word.store(word.load(Ordering::Relaxed) + moved_ns, Ordering::Relaxed);
            (ns, left_ns) = (ns - moved_ns, left_ns - there_ns);
        }
        self.moved_until_ns = now_ns;
    }

    /// Makes one bucket of two.
    fn halve(&mut self) {
        let other = 1 - self.half;
        for bucket in 0..BUCKETS {
            for phase in PHASES {
                let sum_ns = match bucket < BUCKETS / 2 {
                    true => [2 * bucket, 2 * bucket + 1]
                        .map(|bucket| self.word(self.half, bucket, phase).load(Ordering::Relaxed))
                        .iter()
                        .sum(),
                    false => 0,
                };
                self.word(other, bucket, phase).store(sum_ns, Ordering::Relaxed);
            }
        }
        (self.half, self.shift) = (other, self.shift + 1);
        self.set_shape();
    }

    fn set_shape(&self) {
        // PAIRS WITH the load in `Recorded::read`, which comes after the worker's end.
        self.words[SHAPE].store(u64::from(self.shift) * 2 + self.half as u64, Ordering::Release);
    }

    fn set_open(&self, phase: Option<Phase>) {
        // PAIRS WITH the load in `Recorded::read`.
        self.words[OPEN].store(phase.map_or(0, |phase| phase as u64 + 1), Ordering::Release);
    }

    fn word(&self, half: usize, bucket: usize, phase: Phase) -> &'p AtomicU64 {
        &self.words[word_at(half, bucket, phase)]
    }
}

fn word_at(half: usize, bucket: usize, phase: Phase) -> usize {
    HEAD_WORDS + half * HALF_WORDS + bucket * PHASES.len() + phase as usize
}

impl Recorded {
    /// Reads the track of a worker that has ended. `None`: it was never started, or has overwritten its track.
    pub fn read(words: &[AtomicU64]) -> Option<Recorded> {
        let born_ns = words[BORN].load(Ordering::Relaxed).checked_sub(1)?;
        let open = words[OPEN].load(Ordering::Acquire);
        let shape = words[SHAPE].load(Ordering::Acquire);
        if !(u64::from(FIRST_SHIFT)..u64::from(u64::BITS)).contains(&(shape / 2)) || open > PHASES.len() as u64 {
            return None;
        }
        let half = (shape % 2) as usize;
        let mut buckets: Vec<[u64; PHASES.len()]> = (0..BUCKETS)
            .map(|bucket| PHASES.map(|phase| words[word_at(half, bucket, phase)].load(Ordering::Relaxed)))
            .collect();
        buckets.truncate(buckets.iter().rposition(|bucket| bucket.iter().any(|ns| *ns > 0)).map_or(0, |last| last + 1));
        // What it has added up fits the job.
        let time_ns = buckets.iter().flatten().try_fold(0u64, |sum, ns| sum.checked_add(*ns))?;
        if time_ns > (BUCKETS as u64).saturating_mul(1 << (shape / 2)) {
            return None;
        }
        Some(Recorded {
            born_ns,
            width_ns: 1 << (shape / 2),
            buckets,
            open: open.checked_sub(1).map(|phase| PHASES[phase as usize]),
        })
    }

    /// Returns the time up to which it goes, since the start.
    pub fn until_ns(&self) -> u64 {
        self.buckets.iter().flatten().sum()
    }

    /// Adds the phase in which the worker was killed, up to its death.
    pub fn close(&mut self, death_ns: u64) {
        let Some(phase) = self.open.take() else { return };
        let mut from_ns = self.until_ns();
        while from_ns < death_ns {
            let bucket = (from_ns / self.width_ns) as usize;
            let end_ns = death_ns.min((bucket as u64 + 1) * self.width_ns);
            self.buckets.resize(self.buckets.len().max(bucket + 1), [0; PHASES.len()]);
            self.buckets[bucket][phase as usize] += end_ns - from_ns;
            from_ns = end_ns;
        }
        while self.buckets.len() > BUCKETS {
            self.width_ns *= 2;
            self.buckets = self
                .buckets
                .chunks(2)
                .map(|two| std::array::from_fn(|phase| two.iter().map(|bucket| bucket[phase]).sum()))
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START_NS: u64 = 1000;

    fn words() -> Vec<AtomicU64> {
        (0..TRACK_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    /// Returns the time of each phase in all buckets.
    fn sums(recorded: &Recorded) -> [u64; PHASES.len()] {
        std::array::from_fn(|phase| recorded.buckets.iter().map(|bucket| bucket[phase]).sum())
    }

    fn phase() -> impl Strategy<Value = Phase> {
        prop::sample::select(PHASES.to_vec())
    }

    proptest! {
        #[test]
        fn a_track_adds_up_for_any_length_of_job(
            passed in prop::collection::vec((phase(), prop_oneof![0..100u64, 0..10_000_000u64, 0..10_000_000_000u64]), 1..60),
            moves in prop::collection::vec((phase(), phase(), 0..1_000_000u64), 60),
            death_ns in 0..10_000_000_000u64,
        ) {
            let words = words();
            let mut recorder = Recorder::new(&words, START_NS);
            let (mut now_ns, mut expected) = (START_NS, [0; PHASES.len()]);
            let mut open = Phase::Start;
            for ((next, ns), (from, to, moved_ns)) in passed.into_iter().zip(moves) {
                recorder.pass(open, now_ns, now_ns + ns, next);
                now_ns += ns;
                expected[open as usize] += ns;
                let moved_ns = moved_ns.min(expected[from as usize]);
                recorder.move_time(from, to, moved_ns, now_ns);
                expected[from as usize] -= moved_ns;
                expected[to as usize] += moved_ns;
                open = next;
            }
            let mut recorded = Recorded::read(&words).expect("born");
            prop_assert_eq!(sums(&recorded), expected);
            prop_assert_eq!(recorded.until_ns(), now_ns - START_NS);
            prop_assert_eq!(recorded.open, Some(open));
            // No bucket holds more than its width, and the resolution is what the job's length allows.
            prop_assert!(recorded.buckets.iter().all(|bucket| bucket.iter().sum::<u64>() <= recorded.width_ns));
            prop_assert!(recorded.width_ns == 1 << FIRST_SHIFT || recorded.width_ns * (BUCKETS as u64 / 2) < now_ns - START_NS);
            // The open phase lasts until the death.
            let until_ns = recorded.until_ns() + death_ns;
            recorded.close(until_ns);
            expected[open as usize] += death_ns;
            prop_assert_eq!(sums(&recorded), expected);
            prop_assert!(recorded.buckets.len() <= BUCKETS);
            prop_assert!(recorded.buckets.iter().all(|bucket| bucket.iter().sum::<u64>() <= recorded.width_ns));
        }
    }

    #[test]
    fn moved_time_is_taken_from_all_of_the_task() {
        let words = words();
        let mut recorder = Recorder::new(&words, START_NS);
        let width_ns = 1 << FIRST_SHIFT;
        recorder.pass(Phase::Start, START_NS, START_NS + width_ns, Phase::Map);
        recorder.pass(Phase::Map, START_NS + width_ns, START_NS + 5 * width_ns, Phase::Idle);
        recorder.move_time(Phase::Map, Phase::Input, 2 * width_ns, START_NS + 5 * width_ns);
        let recorded = Recorded::read(&words).expect("born");
        let input: Vec<u64> = recorded.buckets.iter().map(|bucket| bucket[Phase::Input as usize]).collect();
        assert_eq!(input, [0, width_ns / 2, width_ns / 2, width_ns / 2, width_ns / 2]);
        assert!(recorded.buckets.iter().all(|bucket| bucket.iter().sum::<u64>() == width_ns));
    }

    #[test]
    fn a_worker_that_ends_leaves_no_phase_open() {
        let words = words();
        let mut recorder = Recorder::new(&words, START_NS);
        recorder.pass(Phase::Start, START_NS, START_NS + 10, Phase::Idle);
        recorder.end();
        let mut recorded = Recorded::read(&words).expect("born");
        recorded.close(1 << 40);
        assert_eq!((recorded.until_ns(), recorded.buckets.len()), (10, 1));
        assert!(Recorded::read(&self::words()).is_none(), "never started");
    }
}
