//! Keeps the times of one of our own applications in the history, where the plans of later runs find them.

use std::ffi::OsString;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_history::{Asked, History, Measured, Problem};
use gristmill_os::machine::{host_name, processors};

use crate::run::applications::Applications;
use crate::run::rounds::Series;
use gristmill_report::messages::printable;

/// Keeps the times of the runs with these words. Returns a sentence, or nothing if there is nothing to keep.
pub fn keep(
    path: &Path,
    all: &[(Vec<OsString>, &[Series])],
    despite_load: bool,
    applications: &Applications,
) -> Option<String> {
    let is_own =
        all.iter().flat_map(|(_, series)| *series).flat_map(|series| &series.runs).any(|run| run.phases.is_some());
    if !is_own {
        return None;
    }
    if !despite_load && all.iter().flat_map(|(_, series)| *series).filter_map(Series::load).any(|load| load.disturbs())
    {
        return Some("The times were not kept for later runs, because the machine was under load.".to_owned());
    }
    let path_text = printable(&path.display().to_string());
    match kept(path, all, applications) {
        Ok(0) => None,
        Ok(_) => Some(format!(
            "The times were kept in {path_text}: later runs with a similar input follow them (--explain shows it, --no-history prevents it)."
        )),
        Err(problem) => Some(format!("The times were not kept for later runs: {path_text}: {problem}.")),
    }
}

/// Returns the number of times that were kept.
fn kept(path: &Path, all: &[(Vec<OsString>, &[Series])], applications: &Applications) -> Result<usize, Problem> {
    let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let processors = processors().usable as u64;
    let mut count = 0;
    let mut history = None;
    for (words, series) in all {
        let Some(asked) = (applications.asked)(words) else { continue };
        let times: Vec<Measured> =
            series.iter().filter_map(|series| measured(series, &asked, processors, at_ms)).collect();
        if times.is_empty() {
            continue;
        }
        let history = match &mut history {
            Some(history) => history,
            none => none.insert(History::open(path)?),
        };
        history.add_measured(&host_name(), &asked.question, &times)?;
        count += times.len();
    }
    Ok(count)
}

fn measured(series: &Series, asked: &Asked, processors: u64, at_ms: u64) -> Option<Measured> {
    let phases = series.runs.iter().find_map(|run| run.phases).filter(|_| series.failure.is_none())?;
    Some(Measured {
        processors,
        files: phases.files,
        input_bytes: phases.input_bytes,
        workers: series.workers,
        map_at_once: asked.map_at_once,
        chunk_bytes: asked.chunk_bytes,
        seconds: series.median()?,
        runs: series.runs.len() as u64,
        at_ms,
    })
}
