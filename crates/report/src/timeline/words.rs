//! The words of a timeline: events, roles, times and shares.

use gristmill::stats::{Event, Mark};

/// Returns what happened, in words, and in one word for the picture.
pub fn told(mark: &Mark) -> (String, String) {
    match &mark.event {
        Event::Death { how, .. } => (how.clone(), "death".into()),
        Event::Redo => ("tasks are mapped again, for the partitions that a dead reducer lost".into(), "redo".into()),
        Event::Step(step) => (format!("step {step} begins"), format!("step {step}")),
        Event::Stage(stage) => (format!("stage {stage} of the checkpoint begins"), format!("stage {stage}")),
        Event::Anew(why) => {
            (format!("the job begins anew: {why}. The picture shows the workers of the last start"), "anew".into())
        }
    }
}

/// Returns a time in the unit that suits it, with three digits.
pub fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        0.0 => return "0".into(),
        ..1e-3 => (seconds * 1e6, "µs"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    match value {
        ..10.0 => format!("{value:.2} {unit}"),
        ..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Returns what a worker does.
pub fn role(maps: bool, reduces: bool) -> &'static str {
    match (maps, reduces) {
        (true, true) => "map+reduce",
        (true, false) => "map",
        (false, _) => "reduce",
    }
}

/// Returns a share.
pub fn percent(part: u64, of: u64) -> String {
    match 100.0 * part as f64 / of.max(1) as f64 {
        share @ 0.0..1.0 if part > 0 => format!("{share:.2} %"),
        share => format!("{share:.0} %"),
    }
}
