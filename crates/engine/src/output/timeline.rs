//! Which phase each worker of a job was in, and when, and what happened meanwhile.

use crate::control::counters::{PHASES, Phase};

/// Which phase each worker of a job was in, and when ([`Job::timeline`](crate::Job::timeline)).
///
/// All times are nanoseconds since the call that ran the job.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// From the call to the result.
    pub wall_ns: u64,
    /// The workers of [`Summary::workers`](crate::Summary::workers) that were started.
    pub tracks: Vec<Track>,
    /// Marks, in the order of time.
    pub marks: Vec<Mark>,
    /// `marks` has one in this many steps, stages and rounds: 1, or more if not all of them fit.
    pub marked_every: u32,
}

/// One worker's time, from the start of the job to its end.
#[derive(Clone, Debug)]
pub struct Track {
    /// Its number, from 1.
    pub number: usize,
    /// Whether it mapped.
    pub maps: bool,
    /// Whether it reduced.
    pub reduces: bool,
    /// When it was started. The time before is in [`Phase::Start`].
    pub born_ns: u64,
    /// When it ended, or was found dead.
    pub end_ns: u64,
    /// The length of a bucket: a power of two, chosen so that 256 buckets are enough.
    pub width_ns: u64,
    /// For each bucket of time, the nanoseconds spent in each phase, in the order of [`PHASES`].
    pub buckets: Vec<[u64; PHASES.len()]>,
}

impl Track {
    /// Returns the nanoseconds spent in `phase`.
    pub fn time_ns(&self, phase: Phase) -> u64 {
        self.buckets.iter().map(|bucket| bucket[phase as usize]).sum()
    }
}

/// A moment at which something happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// The event.
    pub event: Event,
}

/// An event in the life of a job.
// Exhaustive: a picture of a timeline shows every event, and cannot show one that it does not know. The structs of a
// timeline are also made by programs that read one from a file, or that test their pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This worker was found dead, and these sentences say how, and what follows.
    Death {
        /// Its number.
        worker: usize,
        /// How it died, and how the job went on.
        how: String,
    },
    /// The tasks are mapped again, for the partitions that a dead reducer lost.
    Redo,
    /// A step of an iterated job began; the first one is 0, and has no mark.
    Step(u32),
    /// A stage of a job with a checkpoint began; the first one is 0, and has no mark.
    Stage(u32),
    /// The job began anew, and this sentence says why. The tracks are those of the last start.
    Anew(String),
}

impl Event {
    /// Returns whether a job may have very many of its kind.
    fn is_frequent(&self) -> bool {
        matches!(self, Event::Step(_) | Event::Stage(_) | Event::Redo)
    }
}

/// The marks of a running job: all deaths, and as many steps, stages and rounds as fit.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    marks: Vec<Mark>,
    /// The number of marks that are no deaths, and how many there have been with those left out.
    thinned: usize,
    seen: u32,
    every: u32,
}

/// The most marks of steps, stages and rounds.
const THINNED_MAX: usize = 256;

impl Marks {
    pub fn add(&mut self, at_ns: u64, event: Event) {
        if event.is_frequent() {
            let number = self.seen;
            self.seen += 1;
            if !number.is_multiple_of(self.every()) {
                return;
            }
            if self.thinned == THINNED_MAX {
                self.thin();
            }
            self.thinned += 1;
        }
        self.marks.push(Mark { at_ns, event });
    }

    pub fn every(&self) -> u32 {
        self.every.max(1)
    }

    pub fn take(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// Drops every second mark.
    fn thin(&mut self) {
        let mut nth = 0;
        self.marks.retain(|mark| {
            nth += u32::from(mark.event.is_frequent());
            !mark.event.is_frequent() || nth % 2 == 1
        });
        self.thinned = self.thinned.div_ceil(2);
        self.every = 2 * self.every();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_very_many_steps_are_evenly_apart_and_no_death_is_missing() {
        let mut marks = Marks::default();
        for step in 1..=10_000 {
            marks.add(u64::from(step), Event::Step(step));
            if step % 1000 == 0 {
                marks.add(u64::from(step), Event::Death { worker: 1, how: String::new() });
            }
        }
        let every = marks.every();
        let (steps, deaths): (Vec<Mark>, Vec<Mark>) =
            marks.take().into_iter().partition(|mark| matches!(mark.event, Event::Step(_)));
        assert_eq!((every, deaths.len()), (64, 10));
        let expected: Vec<u64> = (0..10_000).step_by(64).map(|step| step + 1).collect();
        assert_eq!(steps.iter().map(|mark| mark.at_ns).collect::<Vec<_>>(), expected);
    }
}
