//! History: times of earlier runs of the same program, and the choices that they speak for.
//!
//! It enters the plan as plain data; where the times are kept is the caller's business. They count only beside each
//! other: a choice is made if at least two numbers of workers, or two sizes of chunks, were measured.

use crate::plan::settings::{Settings, Trial};

/// The trial that the plan follows, and the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Learned {
    pub best: Trial,
    /// The number of trials that agree with what was asked for.
    pub trials: usize,
    /// The longest of their times.
    pub seconds_max: f64,
}

/// Times that differ by less are equal: the choice is then the one that takes less of the machine.
const EQUAL: f64 = 1.03;

/// Returns the best of the trials that agree with what the user asked for.
pub(crate) fn learned(settings: &Settings) -> Option<Learned> {
    if settings.map_workers.is_some() || settings.reduce_workers.is_some() {
        return None;
    }
    let agrees = |trial: &&Trial| {
        settings.workers.is_none_or(|workers| workers == trial.workers)
            && (settings.map_at_once.is_none() || settings.map_at_once == trial.map_at_once)
            && (settings.chunk_bytes.is_none() || settings.chunk_bytes == trial.chunk_bytes)
    };
    let trials: Vec<&Trial> = settings.history.iter().filter(agrees).collect();
    let [first, others @ ..] = &trials[..] else { return None };
    let choices = |trial: &Trial| (trial.workers, trial.map_at_once, trial.chunk_bytes);
    if others.iter().all(|other| choices(other) == choices(first)) {
        return None;
    }
    let seconds = || trials.iter().map(|trial| trial.seconds);
    let (least, seconds_max) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
    let fast = trials.iter().filter(|trial| trial.seconds <= least * EQUAL);
    let best = fast.min_by(|a, b| {
        let cost = |trial: &Trial| (trial.workers, trial.chunk_bytes.is_some(), trial.map_at_once.is_some());
        cost(a).cmp(&cost(b)).then(a.seconds.total_cmp(&b.seconds))
    })?;
    Some(Learned { best: **best, trials: trials.len(), seconds_max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(workers: usize, chunk_bytes: Option<usize>, seconds: f64) -> Trial {
        Trial { workers, map_at_once: None, chunk_bytes, seconds }
    }

    fn best(history: &[Trial], settings: Settings) -> Option<Trial> {
        learned(&Settings { history: history.to_vec(), ..settings }).map(|learned| learned.best)
    }

    #[test]
    fn of_equal_times_the_one_with_fewer_workers_and_without_options_is_best() {
        let u = [trial(1, None, 3.0), trial(2, None, 1.6), trial(4, None, 1.01), trial(8, None, 1.0)];
        assert_eq!(best(&u, Settings::default()), Some(u[2]));
        let chunks = [trial(4, Some(1 << 16), 1.0), trial(4, None, 1.02), trial(4, Some(1 << 20), 2.0)];
        assert_eq!(best(&chunks, Settings::default()), Some(chunks[1]));
        assert_eq!(best(&[chunks[0], chunks[2]], Settings::default()), Some(chunks[0]));
    }

    #[test]
    fn trials_count_only_beside_others_that_agree_with_what_was_asked_for() {
        assert_eq!(best(&[], Settings::default()), None);
        assert_eq!(best(&[trial(2, None, 1.0), trial(2, None, 1.1)], Settings::default()), None);
        let all = [trial(1, None, 3.0), trial(2, None, 2.0), trial(2, Some(4096), 1.0)];
        assert_eq!(best(&all, Settings { workers: Some(2), ..Settings::default() }), Some(all[2]));
        assert_eq!(best(&all, Settings { workers: Some(1), ..Settings::default() }), None);
        assert_eq!(best(&all, Settings { chunk_bytes: Some(4096), ..Settings::default() }), None);
        assert_eq!(best(&all, Settings { map_workers: Some(2), ..Settings::default() }), None);
    }
}
