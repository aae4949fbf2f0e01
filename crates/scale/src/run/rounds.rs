//! The schedule of runs: their order, and which of them count.
//!
//! 1. One warm-up run of each program, which does not count.
//! 2. Rounds: every program with every number of workers once, in ascending order, then in descending order, and so on
//!    (ABBA), so that a machine that becomes slower or faster favours none.
//! 3. A run that other programs disturbed is repeated at once; the less disturbed of the two counts.
//! 4. More rounds, while the times at some number of workers spread widely and there is time.

use std::time::{Duration, Instant};

use crate::diagnose::{Error, Times};
use gristmill_counters::load::Load;

use super::command::{BrokenOff, End, Launcher, Once};
use gristmill_report::tally::Tally;

/// The number and length of rounds.
pub struct Effort {
    /// The minimum number of rounds.
    pub repeats: usize,
    /// The time after which no further round begins, once there are `repeats`.
    pub enough: Duration,
}

/// The runs with one number of workers.
#[derive(Debug, Default)]
pub struct Series {
    /// The place of the program among those that run.
    pub program: usize,
    pub workers: u64,
    /// The runs that count.
    pub runs: Vec<Once>,
    /// The number of runs repeated because others disturbed them.
    pub repeated: usize,
    /// The reason why there are no more.
    pub failure: Option<String>,
}

/// The maximum number of rounds, as a multiple of the minimum.
const ROUNDS_MAX: usize = 3;
/// The relative spread of the middle half of the times above which there is another round.
const SPREAD_MAX: f64 = 0.05;

impl Series {
    /// Returns the load of other programs during the runs that count.
    pub fn load(&self) -> Option<Load> {
        Load::mean(self.runs.iter().filter_map(|run| run.load))
    }

    /// Returns how many processors the command kept busy on average.
    pub fn busy(&self) -> Option<f64> {
        let seconds: f64 = self.runs.iter().map(|run| run.seconds).sum();
        let used: u64 = self.runs.iter().map(|run| run.usage.user_us + run.usage.sys_us).sum();
        (!self.runs.is_empty()).then(|| used as f64 / 1e6 / seconds)
    }

    /// Returns the median of the times, in seconds.
    pub fn median(&self) -> Option<f64> {
        let seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        (!seconds.is_empty()).then(|| Tally::of(&seconds).median)
    }

    /// Returns the run of median time, of two the longer.
    pub fn median_run(&self) -> Option<&Once> {
        let mut runs: Vec<&Once> = self.runs.iter().collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        runs.get(runs.len() / 2).copied()
    }

    /// Returns the share of the processor time that the kernel took.
    pub fn kernel_share(&self) -> Option<f64> {
        let system: u64 = self.runs.iter().map(|run| run.usage.sys_us).sum();
        let all: u64 = self.runs.iter().map(|run| run.usage.user_us + run.usage.sys_us).sum();
        (all > 0).then(|| system as f64 / all as f64)
    }

    fn is_wide(&self) -> bool {
        let seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        if seconds.is_empty() {
            return false;
        }
        let tally = Tally::of(&seconds);
        tally.upper_quartile > tally.lower_quartile * (1.0 + SPREAD_MAX)
    }
}

/// Returns the times of all series, for the curve. If the work grew with the workers, a time is that of the work of
/// one worker.
pub fn times(all: &[Series], is_weak: bool) -> Result<Times, Error> {
    let mut times = Times::default();
    for series in all {
        let share = if is_weak { series.workers as f64 } else { 1.0 };
        for run in &series.runs {
            times.add(series.workers, run.seconds / share)?;
        }
    }
    Ok(times)
}

/// Runs each program with all these numbers of workers. `begins` is called before each run. Returns the series of
/// each program.
pub fn make(
    programs: &[Launcher],
    workers: &[u64],
    warm: u64,
    effort: &Effort,
    mut begins: impl FnMut(u64, usize),
) -> Result<Vec<Vec<Series>>, BrokenOff> {
    let series =
        |program| workers.iter().map(move |workers| Series { program, workers: *workers, ..Series::default() });
    let mut all: Vec<Series> = (0..programs.len()).flat_map(series).collect();
    let began = Instant::now();
    for program in programs {
        begins(warm, 0);
        // If it fails, it will fail again.
        let _ = program.run(warm)?;
    }
    for round in 1..=effort.repeats * ROUNDS_MAX {
        let is_over = round > effort.repeats && (began.elapsed() > effort.enough || !all.iter().any(Series::is_wide));
        if is_over {
            break;
        }
        let ascending = round % 2 == 1;
        for at in 0..all.len() {
            let series = if ascending { at } else { all.len() - 1 - at };
            let series = &mut all[series];
            if series.failure.is_some() {
                continue;
            }
            begins(series.workers, round);
            match once(&programs[series.program], series)? {
                Ok(run) => series.runs.push(run),
                Err(why) => series.failure = Some(why),
            }
        }
    }
    let mut of_programs: Vec<Vec<Series>> = programs.iter().map(|_| Vec::new()).collect();
    all.into_iter().for_each(|series| of_programs[series.program].push(series));
    Ok(of_programs)
}

/// Runs once, or twice if disturbed, and keeps the less disturbed run.
fn once(program: &Launcher, series: &mut Series) -> Result<End, BrokenOff> {
    let first = program.run(series.workers)?;
    let Ok(run) = &first else { return Ok(first) };
    if !run.load.is_some_and(|load| load.disturbs()) {
        return Ok(first);
    }
    series.repeated += 1;
    let second = program.run(series.workers)?;
    let foreign = |run: &Once| run.load.map_or(0.0, |load| load.foreign);
    Ok(match &second {
        Ok(again) if foreign(again) >= foreign(run) => first,
        _ => second,
    })
}
