//! The progress bar while the job runs, and the summary line at the end.
//!
//! The calling thread draws the bar; it has no thread of its own, because workers are forked from this process.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gristmill::Summary;
use gristmill::files::{InputNews, LeftOut};
use gristmill::stats::{Count, Counters, Progress};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::messages::{self, tell};
use gristmill_report::text::counted;

/// Jobs shorter than this need no bar.
const PATIENCE: Duration = Duration::from_millis(300);
const DRAWS_PER_SECOND: u8 = 10;
/// The number of news that are printed one by one.
const NEWS_TOLD: usize = 4;

/// The terminal during the job.
pub struct Terminal {
    /// `None` if standard error is not a terminal.
    bar: Option<OnceLock<ProgressBar>>,
    quiet: bool,
    began: Instant,
    /// The number of news so far.
    told: AtomicUsize,
    /// The bar for the copy of a stream, before the job.
    copying: Arc<OnceLock<ProgressBar>>,
    unit: Mutex<Unit>,
    pace: Mutex<Option<Pace>>,
}

/// The unit in which the work of a job is counted.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Bytes of the input.
    Bytes,
    /// A share of the whole, for work without a familiar unit.
    Share,
    /// Steps, with their maximum number.
    Steps(Option<usize>),
}

/// The start of a step or round, and the number of bytes done by then.
#[derive(Clone, Copy)]
struct Pace {
    since: Instant,
    step: u32,
    round: u32,
    done_bytes: u64,
}

impl Terminal {
    pub fn new(quiet: bool) -> Terminal {
        let watched = !quiet && std::io::stderr().is_terminal();
        Terminal {
            bar: watched.then(OnceLock::new),
            quiet,
            began: Instant::now(),
            told: AtomicUsize::new(0),
            copying: Arc::default(),
            unit: Mutex::new(Unit::Bytes),
            pace: Mutex::new(None),
        }
    }

    /// Counts the work in another unit than bytes.
    pub fn count_in(&self, unit: Unit) {
        *self.unit.lock().unwrap_or_else(PoisonError::into_inner) = unit;
    }

    fn unit(&self) -> Unit {
        *self.unit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if [`Terminal::show`] shows anything.
    pub fn is_watched(&self) -> bool {
        self.bar.is_some()
    }

    /// Draws the bar.
    pub fn show(&self, progress: Progress) {
        let Some(bar) = &self.bar else { return };
        end(&self.copying);
        let rate = self.rate(&progress);
        if self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = bar.get_or_init(draw);
        if bar.is_finished() {
            return;
        }
        let share = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let share = match self.unit() {
            Unit::Steps(Some(most)) => (f64::from(progress.step) + share) / most.max(1) as f64,
            _ => share,
        };
        bar.set_position((share.min(1.0) * PARTS as f64) as u64);
        bar.set_message(message(progress, self.unit(), rate));
    }

    /// Returns the bytes per second since this step or round began; `None` if that was only a moment ago.
    fn rate(&self, progress: &Progress) -> Option<f64> {
        let Progress { step, round, done_bytes, .. } = *progress;
        let same = |pace: &Pace| pace.step == step && pace.round == round && pace.done_bytes <= done_bytes;
        let mut last = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = last.filter(same).unwrap_or(Pace { since: Instant::now(), step, round, done_bytes });
        *last = Some(pace);
        let passed = pace.since.elapsed();
        (passed >= PATIENCE).then(|| (done_bytes - pace.done_bytes) as f64 / passed.as_secs_f64())
    }

    /// Removes the bar before rows or the summary follow.
    pub fn clear(&self) {
        end(&self.copying);
        if let Some(bar) = self.bar.as_ref().and_then(OnceLock::get)
            && !bar.is_finished()
        {
            bar.finish_and_clear();
        }
    }

    /// Returns a function that prints news about the input.
    pub fn of_input(&self) -> impl Fn(&InputNews<'_>) + Send + Sync + use<> {
        let (quiet, is_watched, began) = (self.quiet, self.is_watched(), self.began);
        let copying = self.copying.clone();
        move |news| match news {
            InputNews::LeftOut(tally) if !quiet => {
                let hint = match tally.why {
                    LeftOut::Link => " (--follow follows them)",
                    LeftOut::Hidden | LeftOut::Special => " (what is named is read)",
                    _ => "",
                };
                tell(format_args!("{tally}{hint}"));
            }
            InputNews::Copied { name, bytes } if is_watched && began.elapsed() >= PATIENCE => {
                let bar = copying.get_or_init(|| draw_copying(&messages::printable(&name.display().to_string())));
                bar.set_position(*bytes);
            }
            InputNews::Checking { files, bytes } if is_watched => {
                tell(format_args!("reading {files} files once to find the bad ones: {}", HumanBytes(*bytes)));
            }
            _ => {}
        }
    }

    /// Prints news while the job continues.
    pub fn tell(&self, news: &str) {
        let told_before = self.told.fetch_add(1, Ordering::Relaxed);
        if self.quiet || told_before >= NEWS_TOLD {
            return;
        }
        match self.bar.as_ref().and_then(OnceLock::get) {
            Some(bar) => bar.suspend(|| tell(news)),
            None => tell(news),
        }
    }

    /// Prints how many workers were replaced and, on a terminal, the amount of work and the time.
    pub fn sum_up(&self, summary: &Summary, besides: Besides, pairs: &str, keys: &str) {
        self.clear();
        if self.quiet {
            return;
        }
        if self.told.load(Ordering::Relaxed) > NEWS_TOLD {
            tell(format_args!("{} workers died in all; the result is complete", summary.deaths.len()));
        }
        if self.is_watched() {
            messages::line(line(summary, self.unit(), besides, pairs, keys));
        }
    }
}

/// Pairs and keys that do not belong to a job's answer: they count what it leaves out.
#[derive(Clone, Copy, Default)]
pub struct Besides {
    pub pairs: u64,
    pub keys: u64,
}

/// The resolution of the bar.
const PARTS: u64 = 10_000;

fn draw() -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let style = ProgressStyle::with_template("{wide_bar} {msg}");
    ProgressBar::with_draw_target(Some(PARTS), target).with_style(style.expect("a template that is right"))
}

/// Draws the bar for a copy of unknown length.
fn draw_copying(name: &str) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let style = ProgressStyle::with_template(
        "copying {msg}, which can be read only once: {binary_bytes}, {binary_bytes_per_sec}",
    );
    let bar = ProgressBar::with_draw_target(None, target).with_style(style.expect("a template that is right"));
    bar.with_message(name.to_owned())
}

/// Removes the bar of a copy.
fn end(copying: &OnceLock<ProgressBar>) {
    if let Some(bar) = copying.get().filter(|bar| !bar.is_finished()) {
        bar.finish_and_clear();
    }
}

/// Formats `95.4 MiB of 1.2 GiB, 307.7 MiB/s, 4s left, 2 workers`.
fn message(progress: Progress, unit: Unit, rate: Option<f64>) -> String {
    let Progress { done_bytes, total_bytes, .. } = progress;
    let mut message = match unit {
        Unit::Bytes => format!("{} of {}", HumanBytes(done_bytes), HumanBytes(total_bytes)),
        Unit::Share => format!("{:.0} %", done_bytes as f64 / total_bytes.max(1) as f64 * 100.0),
        Unit::Steps(None) => format!("step {}", progress.step + 1),
        Unit::Steps(Some(most)) => format!("step {} of at most {most}", progress.step + 1),
    };
    if let (Unit::Bytes, Some(rate)) = (unit, rate.filter(|rate| *rate >= 1.0)) {
        let left = Duration::from_secs((total_bytes.saturating_sub(done_bytes) as f64 / rate) as u64);
        let left = humantime::format_duration(left);
        message.push_str(&format!(", {}/s, {left} left", HumanBytes(rate as u64)));
    }
    message.push_str(&format!(", {}", counted(progress.workers as u64, "worker")));
    if progress.deaths > 0 {
        message.push_str(&format!(", {} replaced", progress.deaths));
    }
    if progress.round > 0 {
        message.push_str(", mapping again what was lost");
    }
    if progress.finishing {
        message.push_str(", sorting");
    }
    message
}

/// Formats `16,337,462 words (1,734,022 distinct) in 95.4 MiB, 0.31 s, 307.7 MiB/s, 2 workers`.
fn line(summary: &Summary, unit: Unit, besides: Besides, pairs: &str, keys: &str) -> String {
    let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
    let seconds = summary.wall_ns as f64 / 1e9;
    // Pairs of a dead worker are counted again when its successor emits them.
    let about = if summary.deaths.is_empty() { "" } else { "about " };
    let mut line = format!(
        "{about}{} {pairs} ({about}{} {keys})",
        HumanCount(counters.get(Count::PairsEmitted).saturating_sub(besides.pairs)),
        HumanCount(counters.get(Count::Keys).saturating_sub(besides.keys)),
    );
    let took = match unit {
        Unit::Bytes => {
            let rate = (summary.input_bytes as f64 / seconds) as u64;
            format!(" in {}, {seconds:.2} s, {}/s", HumanBytes(summary.input_bytes), HumanBytes(rate))
        }
        Unit::Share => format!(", {seconds:.2} s"),
        Unit::Steps(_) => format!(", {} steps, {seconds:.2} s", summary.steps),
    };
    line.push_str(&format!("{took}, {}", counted((summary.workers.len() - summary.deaths.len()) as u64, "worker")));
    if !summary.deaths.is_empty() {
        line.push_str(&format!(", {} replaced", summary.deaths.len()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(done_bytes: u64, step: u32) -> Progress {
        Progress { done_bytes, total_bytes: 1 << 30, workers: 2, deaths: 0, step, round: 0, finishing: false }
    }

    /// The first bar of a job of 1 GiB once showed 906 GiB/s, because it was drawn a moment before its first position
    /// was set.
    #[test]
    fn a_rate_counts_only_observed_bytes() {
        let terminal = Terminal::new(true);
        assert_eq!(terminal.rate(&progress(1 << 29, 0)), None);
        let at = |seconds: u64, step| {
            let since = Instant::now().checked_sub(Duration::from_secs(seconds)).expect("the machine runs longer");
            *terminal.pace.lock().expect("no panic") = Some(Pace { since, step, round: 0, done_bytes: 1 << 29 });
        };
        at(1, 0);
        let rate = terminal.rate(&progress(3 << 28, 0)).expect("a second has passed");
        assert!((2e8..=(1 << 28) as f64).contains(&rate), "{rate}");
        assert_eq!(terminal.rate(&progress(3 << 28, 1)), None, "another step begins anew");
    }

    /// The bar of k-means once showed bytes of a list of block numbers.
    #[test]
    fn work_is_counted_in_familiar_units() {
        let message = |unit, rate| message(progress(1 << 29, 4), unit, rate);
        assert_eq!(message(Unit::Bytes, None), "512.00 MiB of 1.00 GiB, 2 workers");
        let with_rate = message(Unit::Bytes, Some((1 << 28) as f64));
        assert_eq!(with_rate, "512.00 MiB of 1.00 GiB, 256.00 MiB/s, 2s left, 2 workers");
        assert_eq!(message(Unit::Share, Some(1e9)), "50 %, 2 workers");
        assert_eq!(message(Unit::Steps(Some(100)), None), "step 5 of at most 100, 2 workers");
        assert_eq!(message(Unit::Steps(None), None), "step 5, 2 workers");
    }

    /// A sum of three rows by three keys, one of them without a number, once reported "4 keys (4 distinct)".
    #[test]
    fn the_count_of_skipped_rows_is_not_a_key() {
        use gristmill_apps::Sum;
        let mut rows = gristmill::Input::bytes("rows", b"fig,1\npear,\nkiwi,2\n").expect("in memory");
        let [by, sum] = [1, 2].map(gristmill_apps::Column::Number);
        let program = gristmill_apps::SumBy::csv(&mut rows, &Default::default(), by, sum).expect("rows");
        let mut besides = Besides::default();
        let job = program.job(rows).isolation(gristmill::Isolation::Thread).workers(1);
        let summary = job.run_each(|_, sum| {
            if let Some(rows) = sum.rows_left_out() {
                besides = Besides { pairs: rows.pairs, keys: 1 };
                assert_eq!(rows.rows, 1);
            }
            std::ops::ControlFlow::Continue(())
        });
        let line = line(&summary.expect("summed"), Unit::Bytes, besides, "keys", "distinct");
        assert!(line.starts_with("3 keys (3 distinct)"), "{line}");
    }
}
