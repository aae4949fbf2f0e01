//! The table on a terminal: running programs, and how far the queue has come.

use std::time::{Duration, Instant};

use crate::queue::{BatchJob, Counts};
use indicatif::{ProgressBar, ProgressStyle};

use crate::program::running::{Ending, Running};
use gristmill_report::messages::printable;

/// The rows of running programs; more are counted.
const ROWS_MAX: usize = 12;
const NAME_LETTERS: usize = 48;

/// The table, if standard error is a terminal.
pub struct Live {
    bar: Option<ProgressBar>,
}

impl Live {
    pub fn new(is_shown: bool) -> Live {
        let bar = is_shown.then(|| {
            let bar = ProgressBar::no_length();
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is right"));
            bar
        });
        Live { bar }
    }

    pub fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    /// Draws the table. The number of all jobs is `None` while the list arrives.
    pub fn show<'p>(
        &self,
        jobs: &[BatchJob],
        running: impl Iterator<Item = &'p Running>,
        (counts, all): (&Counts, Option<usize>),
        left: Option<Duration>,
        held: Option<&str>,
    ) {
        let Some(bar) = &self.bar else { return };
        let now = Instant::now();
        let mut rows: Vec<String> = running.map(|program| row(&jobs[program.job], program, now)).collect();
        let more = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        if more > 0 {
            rows.push(format!("and {more} more"));
        }
        rows.push(total(all, counts, left, held));
        bar.set_message(rows.join("\n"));
    }

    /// Removes the table while `print` prints.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the table.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn row(job: &BatchJob, program: &Running, now: Instant) -> String {
    let state = match program.ending {
        None if program.is_stopped() => "stopped",
        None => "running",
        Some(Ending::TimedOut) => "too long",
        Some(Ending::Asked | Ending::Killed) => "ending",
    };
    let name: String = printable(&job.name).chars().take(NAME_LETTERS).collect();
    let attempt = if program.attempt > 1 { format!("  attempt {}", program.attempt) } else { String::new() };
    format!("{state:9} {:>7}  {name}{attempt}", seconds(now - program.began))
}

fn total(all: Option<usize>, counts: &Counts, left: Option<Duration>, held: Option<&str>) -> String {
    let done = counts.succeeded + counts.failed + counts.skipped;
    let failed = if counts.failed > 0 { format!(", {} failed", counts.failed) } else { String::new() };
    let left = left.map_or(String::new(), |left| format!("; about {} left", seconds(left)));
    let held = held.map_or(String::new(), |held| format!(" ({held})"));
    let all = all.map_or(String::new(), |all| format!(" of {all}"));
    format!("{done}{all} done{failed}, {} running, {} waiting{held}{left}", counts.running, counts.waiting)
}

/// Returns a time in its largest unit.
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_tells_how_far_the_queue_has_come() {
        let counts = Counts { waiting: 4, running: 2, succeeded: 3, failed: 1, ..Counts::default() };
        let left = Some(Duration::from_secs(150));
        let row = total(Some(10), &counts, left, None);
        assert_eq!(row, "4 of 10 done, 1 failed, 2 running, 4 waiting; about 3 min left");
        let row = total(None, &counts, None, Some("held by --load"));
        assert_eq!(row, "4 done, 1 failed, 2 running, 4 waiting (held by --load)");
    }
}
