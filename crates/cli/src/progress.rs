//! What a terminal sees while the job runs, and in one line at the end.
//!
//! The bar is drawn by whoever calls it, never by a thread of its own: workers are forked from this process.

use std::cell::{Cell, OnceCell};
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gristmill::{Count, Counters, InputNews, LeftOut, Progress, Summary};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::messages::{self, tell};

/// Jobs shorter than this need no bar.
const PATIENCE: Duration = Duration::from_millis(300);
const DRAWS_PER_SECOND: u8 = 10;
/// News that are told one by one.
const NEWS_TOLD: usize = 4;

/// The terminal, as long as the job runs.
pub struct Terminal {
    /// `None` when nobody is looking.
    bar: Option<OnceCell<ProgressBar>>,
    quiet: bool,
    began: Instant,
    /// News so far.
    told: Cell<usize>,
    /// The bar of a stream that is copied, before the job.
    copying: Arc<OnceLock<ProgressBar>>,
}

impl Terminal {
    pub fn new(quiet: bool) -> Terminal {
        let watched = !quiet && std::io::stderr().is_terminal();
        let (began, told) = (Instant::now(), Cell::new(0));
        Terminal { bar: watched.then(OnceCell::new), quiet, began, told, copying: Arc::default() }
    }

    /// True when [`Terminal::show`] shows something.
    pub fn is_watched(&self) -> bool {
        self.bar.is_some()
    }

    /// Draws the bar.
    pub fn show(&self, progress: Progress) {
        let Some(bar) = &self.bar else { return };
        end(&self.copying);
        if self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = bar.get_or_init(|| draw(progress.total_bytes));
        if bar.is_finished() {
            return;
        }
        bar.set_length(progress.total_bytes);
        bar.set_message(message(progress));
        bar.set_position(progress.done_bytes);
    }

    /// Takes the bar away: rows or the summary follow.
    pub fn clear(&self) {
        end(&self.copying);
        if let Some(bar) = self.bar.as_ref().and_then(OnceCell::get)
            && !bar.is_finished()
        {
            bar.finish_and_clear();
        }
    }

    /// Tells what a user should know of the input.
    pub fn of_input(&self) -> impl Fn(&InputNews<'_>) + Send + Sync + use<> {
        let (quiet, is_watched, began) = (self.quiet, self.is_watched(), self.began);
        let copying = self.copying.clone();
        move |news| match news {
            InputNews::LeftOut(tally) if !quiet => {
                let hint = match tally.why {
                    LeftOut::Link => " (--follow follows them)",
                    LeftOut::Special => " (what is named is read)",
                    _ => "",
                };
                tell(format_args!("{tally}{hint}"));
            }
            InputNews::Copied { name, bytes } if is_watched && began.elapsed() >= PATIENCE => {
                let bar = copying.get_or_init(|| draw_copying(&name.display().to_string()));
                bar.set_position(*bytes);
            }
            InputNews::Checking { files, bytes } if is_watched => {
                tell(format_args!("reading {files} files once to find the bad ones: {}", HumanBytes(*bytes)));
            }
            _ => {}
        }
    }

    /// Tells of something that has happened, while the job goes on.
    pub fn tell(&self, news: &str) {
        self.told.set(self.told.get() + 1);
        if self.quiet || self.told.get() > NEWS_TOLD {
            return;
        }
        match self.bar.as_ref().and_then(OnceCell::get) {
            Some(bar) => bar.suspend(|| tell(news)),
            None => tell(news),
        }
    }

    /// Tells how many workers were replaced, and, on a terminal, what was done in which time.
    pub fn sum_up(&self, summary: &Summary, pairs: &str, keys: &str) {
        self.clear();
        if self.quiet {
            return;
        }
        if self.told.get() > NEWS_TOLD {
            tell(format_args!("{} workers died in all; the result is complete", summary.deaths.len()));
        }
        if self.is_watched() {
            messages::line(line(summary, pairs, keys));
        }
    }
}

fn draw(total_bytes: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let style = ProgressStyle::with_template(
        "{wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left, {msg}",
    );
    ProgressBar::with_draw_target(Some(total_bytes), target).with_style(style.expect("a template that is right"))
}

/// The bar of a copy: nobody knows how much is still to come.
fn draw_copying(name: &str) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let style = ProgressStyle::with_template(
        "copying {msg}, which can be read only once: {binary_bytes}, {binary_bytes_per_sec}",
    );
    let bar = ProgressBar::with_draw_target(None, target).with_style(style.expect("a template that is right"));
    bar.with_message(name.to_owned())
}

/// Takes the bar of a copy away.
fn end(copying: &OnceLock<ProgressBar>) {
    if let Some(bar) = copying.get().filter(|bar| !bar.is_finished()) {
        bar.finish_and_clear();
    }
}

fn workers(number: usize) -> String {
    if number == 1 { "1 worker".to_owned() } else { format!("{number} workers") }
}

fn message(progress: Progress) -> String {
    let mut message = workers(progress.workers);
    if progress.deaths > 0 {
        message.push_str(&format!(", {} replaced", progress.deaths));
    }
    if progress.step > 0 {
        message.push_str(&format!(", step {}", progress.step));
    }
    if progress.round > 0 {
        message.push_str(", mapping again what was lost");
    }
    if progress.finishing {
        message.push_str(", sorting");
    }
    message
}

/// `16,337,462 words (1,734,022 distinct) in 95.4 MiB, 0.31 s, 307.7 MiB/s, 2 workers`
fn line(summary: &Summary, pairs: &str, keys: &str) -> String {
    let counted = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
    let seconds = summary.wall_ns as f64 / 1e9;
    let rate = (summary.input_bytes as f64 / seconds) as u64;
    // What a dead worker had emitted is counted with what its successor emitted.
    let about = if summary.deaths.is_empty() { "" } else { "about " };
    let mut line = format!(
        "{about}{} {pairs} ({about}{} {keys}) in {}, {seconds:.2} s, {}/s, {}",
        HumanCount(counted.get(Count::PairsEmitted)),
        HumanCount(counted.get(Count::Keys)),
        HumanBytes(summary.input_bytes),
        HumanBytes(rate),
        workers(summary.workers.len() - summary.deaths.len()),
    );
    if !summary.deaths.is_empty() {
        line.push_str(&format!(", {} replaced", summary.deaths.len()));
    }
    line
}
