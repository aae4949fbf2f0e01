//! Gathers the timeline of a job when its workers have ended.

use crate::coordinator::state::Coordinator;
use crate::output::timeline::{Event, Timeline, Track};
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Returns the timeline of a job that lasted until `wall_ns`, if it was asked for.
    pub(super) fn timeline(&mut self, wall_ns: u64) -> Option<Timeline> {
        let Setup { shared, .. } = *self.setup;
        let marks = self.kept.marks.as_mut()?;
        let (marked_every, marks) = (marks.every(), marks.take());
        // Earlier starts of the job had workers of the same numbers.
        let last_start = marks.iter().rposition(|mark| matches!(mark.event, Event::Anew(_))).map_or(0, |at| at + 1);
        let death_ns = |slot: usize| {
            let mut marks = marks[last_start..].iter();
            marks.find_map(|mark| match mark.event {
                Event::Death { worker, .. } if worker == slot => Some(mark.at_ns),
                _ => None,
            })
        };
        let tracks = self.hands.iter().filter_map(|hand| {
            let slot = hand.role.slot;
            let mut recorded = shared.recorded(slot)?;
            // A worker that did not end by itself was in its last phase until it was killed.
            recorded.close(death_ns(slot).unwrap_or(wall_ns));
            if recorded.born_ns > recorded.until_ns() {
                return None; // It was overwritten.
            }
            Some(Track {
                number: slot,
                maps: hand.role.maps,
                reduces: hand.role.reduces.is_some(),
                born_ns: recorded.born_ns,
                end_ns: recorded.until_ns(),
                width_ns: recorded.width_ns,
                buckets: recorded.buckets,
            })
        });
        Some(Timeline { wall_ns, tracks: tracks.collect(), marks, marked_every })
    }
}
