//! Timelines as Python has them: tuples of numbers, which go from the process of the job to the program.

use std::time::Duration;

use gristmill::stats::{Event, Mark, PHASES, Timeline, Track};
use gristmill_report::timeline::{TimelineJob, fragment, page};
use pyo3::pyfunction;

/// A timeline: how long the job took, one of how many steps has a mark, its tracks and its marks.
pub type Told = (u64, u32, Vec<ToldTrack>, Vec<ToldMark>);
/// A track: the fields of [`Track`], the number of its buckets, and what of them is not zero: place and nanoseconds.
type ToldTrack = (usize, bool, bool, u64, u64, u64, usize, Vec<(usize, u64)>);
/// A mark: its time, the kind, the number and the text of its event.
type ToldMark = (u64, String, u64, String);

/// A stage of a job: its title, the seconds from the start of the job to its own, and its timeline.
pub type ToldRun = (String, f64, Told);

pub fn told(timeline: &Timeline) -> Told {
    let tracks = timeline.tracks.iter().map(|track| {
        let Track { number, maps, reduces, born_ns, end_ns, width_ns, buckets } = track;
        let filled = buckets.iter().flatten().copied().enumerate().filter(|(_, ns)| *ns > 0).collect();
        (*number, *maps, *reduces, *born_ns, *end_ns, *width_ns, buckets.len(), filled)
    });
    let marks = timeline.marks.iter().map(|mark| {
        let (kind, number, text) = match &mark.event {
            Event::Death { worker, how } => ("death", *worker as u64, how.as_str()),
            Event::Redo => ("redo", 0, ""),
            Event::Step(step) => ("step", u64::from(*step), ""),
            Event::Stage(stage) => ("stage", u64::from(*stage), ""),
            Event::Anew(why) => ("anew", 0, why.as_str()),
        };
        (mark.at_ns, kind.to_owned(), number, text.to_owned())
    });
    (timeline.wall_ns, timeline.marked_every, tracks.collect(), marks.collect())
}

fn timeline((wall_ns, marked_every, tracks, marks): Told) -> Timeline {
    let track = |(number, maps, reduces, born_ns, end_ns, width_ns, length, filled): ToldTrack| {
        let mut buckets = vec![[0; PHASES.len()]; length];
        for (place, ns) in filled {
            buckets[place / PHASES.len()][place % PHASES.len()] = ns;
        }
        Track { number, maps, reduces, born_ns, end_ns, width_ns, buckets }
    };
    let mark = |(at_ns, kind, number, text): ToldMark| {
        let event = match kind.as_str() {
            "death" => Event::Death { worker: number as usize, how: text },
            "step" => Event::Step(number as u32),
            "stage" => Event::Stage(number as u32),
            "anew" => Event::Anew(text),
            _ => Event::Redo,
        };
        Mark { at_ns, event }
    };
    let (tracks, marks) = (tracks.into_iter().map(track).collect(), marks.into_iter().map(mark).collect());
    Timeline { wall_ns, tracks, marks, marked_every }
}

/// Draws the stages of a job: as a page of this title, or as a part of one.
#[pyfunction]
#[pyo3(name = "timeline")]
pub fn drawn(title: Option<&str>, runs: Vec<ToldRun>) -> String {
    let runs: Vec<(String, f64, Timeline)> =
        runs.into_iter().map(|(title, began, told)| (title, began, timeline(told))).collect();
    let runs: Vec<TimelineJob<'_>> = runs
        .iter()
        .map(|(title, began, timeline)| TimelineJob {
            title: title.clone(),
            began: Duration::from_secs_f64(*began),
            timeline,
        })
        .collect();
    title.map_or_else(|| fragment(&runs), |title| page(title, &runs))
}
