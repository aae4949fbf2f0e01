//! The account of the workers' time, for each number of workers.
//!
//! 1. What the kernel counts (user and system time, page faults, waits) comes from the timed run of median time.
//! 2. The rest, in which workers did not run, is divided by one more run whose threads are sampled. It is not timed,
//!    because sampling takes time. The first sample is taken at once, the next ones every 5 ms, or less often if there
//!    are so many threads that sampling would take more than a tenth of the time. Where the kernel allows it, samples
//!    of its own functions also divide the system time.
//! 3. Where both runs differ in what they lost, nothing is said of the rest.

use crate::diagnose::{Account, Cause, Counted, Finding, Findings, Loss, TimePart};

use super::experiments::section;
use crate::run::command::{BrokenOff, Launcher, Once};
use crate::run::look::Look;
use crate::run::rounds::Series;
use crate::section::Section;
use gristmill_report::tally::Tally;
use gristmill_report::text::escape;

/// The accounts of all numbers of workers that ran.
pub struct Evidence {
    /// The accounts, each with the facts about its runs.
    pub rows: Vec<AccountRow>,
    /// The average slowdown of the sampled runs against the timed ones: 0.03 is three percent.
    longer: f64,
    /// True if other programs took too much of the processors.
    pub disturbed: bool,
    /// True if a verdict is wanted nevertheless.
    pub despite_load: bool,
    /// The findings of experiments on the loss, if any were made.
    pub findings: Option<Findings>,
}

/// An account, and how sure it is.
#[derive(Clone)]
pub struct AccountRow {
    pub account: Account,
    /// The times of the timed runs.
    times: Tally,
    /// The thread-seconds of the sampled run in which workers did not run.
    sampled_rest: f64,
}

/// Runs once with each number of workers that has not failed. Returns a signal if this program was asked to end.
pub fn gather(program: &Launcher, all: &[Series], mut begins: impl FnMut(u64)) -> Result<Evidence, BrokenOff> {
    let mut evidence =
        Evidence { rows: Vec::new(), longer: 0.0, disturbed: false, despite_load: false, findings: None };
    let (mut timed, mut watched) = (0.0, 0.0);
    for series in all.iter().filter(|series| series.failure.is_none()) {
        let Some(median) = series.median_run() else { continue };
        begins(series.workers);
        // It succeeded before; if it fails now, it just has no account.
        let Some((run, look)) = sampled(program, series.workers, median.seconds)? else { continue };
        timed += median.seconds;
        watched += run.seconds;
        evidence.disturbed |= run.load.is_some_and(|load| load.disturbs());
        let seconds: Vec<f64> = series.runs.iter().map(|run| run.seconds).collect();
        evidence.rows.push(AccountRow {
            account: Account::of(counted(series.workers, median), &look.seen()),
            times: Tally::of(&seconds),
            sampled_rest: rest(&counted(series.workers, &run)),
        });
    }
    evidence.longer = if timed > 0.0 { watched / timed - 1.0 } else { 0.0 };
    Ok(evidence)
}

/// Runs until other programs do not disturb and it takes about as long as the timed runs, or often enough. Returns the
/// least disturbed run with its samples.
fn sampled(program: &Launcher, workers: u64, timed: f64) -> Result<Option<(Once, Look)>, BrokenOff> {
    let mut best: Option<(Once, Look)> = None;
    for _ in 0..ATTEMPTS {
        let mut look = Look::new(workers);
        let Ok(run) = program.watch(workers, &mut look)? else { break };
        let disturbed = |run: &Once| run.load.filter(|load| load.disturbs()).map_or(0.0, |load| load.foreign_least);
        let differs = |run: &Once| (run.seconds / timed).ln().abs();
        let order = |run: &Once| (disturbed(run), differs(run));
        if best.as_ref().is_none_or(|(other, _)| order(&run) < order(other)) {
            best = Some((run, look));
        }
        if disturbed(&run) == 0.0 && differs(&run) <= DIFFERENCE_MAX {
            break;
        }
    }
    Ok(best)
}

fn counted(workers: u64, run: &Once) -> Counted {
    Counted {
        workers,
        seconds: run.seconds,
        user: run.usage.user_us as f64 / 1e6,
        system: run.usage.sys_us as f64 / 1e6,
        faults: run.usage.minor_faults,
        waits: run.usage.voluntary_switches,
    }
}

/// Returns the thread-seconds in which workers did not run.
fn rest(counted: &Counted) -> f64 {
    (counted.workers as f64 * counted.seconds - counted.user - counted.system).max(0.0)
}

/// How often a sampled run is made at most.
const ATTEMPTS: usize = 3;
/// The difference of a sampled run's time from the timed ones, in logarithms, beyond which it is made again.
const DIFFERENCE_MAX: f64 = 0.1;
/// Runs shorter than this have too few samples.
const SECONDS_MIN: f64 = 0.05;
/// The difference between the rest of the timed and of the sampled run, as a share of the larger, for which they agree.
const REST_DIFFERENCE_MAX: f64 = 0.5;
/// The difference between them, as a share of the whole, that means nothing.
const REST_NONE: f64 = 0.05;

impl Evidence {
    /// Returns the rows of the fewest workers, and of the most for which there are processors.
    fn compared(&self, processors: u64) -> Option<(&AccountRow, &AccountRow)> {
        let few = self.rows.first()?;
        let room = self.rows.iter().rev().find(|row| row.account.counted.workers <= processors);
        Some((few, room.filter(|many| many.account.counted.workers > few.account.counted.workers)?))
    }

    /// Returns the loss with the most workers for which there are processors, and how many processors the fewest keep
    /// busy, however uncertain it is. `None` if others disturbed the runs.
    pub fn any_loss(&self, processors: u64) -> Option<(Loss, f64)> {
        let (few, many) = self.compared(processors).filter(|_| !self.disturbed || self.despite_load)?;
        Some((Loss::of(&few.account, &many.account), few.account.busy()))
    }

    /// Returns the same, if something can be said of it.
    ///
    /// # Errors
    /// A sentence that says why not. Empty if there are no two numbers of workers to compare.
    pub fn loss(&self, processors: u64) -> Result<(Loss, f64), String> {
        let (few, many) = self.compared(processors).ok_or_else(String::new)?;
        let cannot = |why: &str| Err(format!("Why cannot be told: {why}"));
        if self.disturbed && !self.despite_load {
            return cannot(
                "other programs used the processors during the runs that would say it. If they belong to the command, such as a server \
                 that it asks, --despite-load tells.",
            );
        }
        if [few, many].iter().any(|row| row.account.counted.seconds < SECONDS_MIN) {
            return cannot("the runs are too short to be looked at. Give the command more to do.");
        }
        let loss = Loss::of(&few.account, &many.account);
        if matches!(loss.cause, Cause::None | Cause::Busy { .. } | Cause::Helped { .. }) {
            return Ok((loss, few.account.busy()));
        }
        let workers = [few, many].map(|row| row.account.counted.workers as f64);
        let share = loss.share * 100.0;
        if workers[1] * many.times.lower_quartile <= workers[0] * few.times.upper_quartile {
            return cannot(&format!(
                "with {} workers {share:.0} % of their time is lost, but the times of equal runs differ by as much. More --repeats, or a \
                 quieter machine, would tell.",
                loss.workers
            ));
        }
        if loss.is_by_rest() && !(few.agrees() && many.agrees()) {
            return cannot(&format!(
                "with {} workers the timed runs lost {share:.0} % of their time, but the runs that were looked at did not lose it in the same \
                 way. Other programs may have disturbed some of them: try it again.",
                loss.workers
            ));
        }
        Ok((loss, few.account.busy()))
    }

    /// Returns the loss and its cause.
    pub fn sentence(&self, processors: u64) -> Option<String> {
        let loss = match self.loss(processors) {
            Ok((loss, _)) => loss,
            Err(why) => return (!why.is_empty()).then_some(why),
        };
        if self.disturbed && loss.cause == Cause::Crowded {
            return Some(loss.explained("other programs used them (measured)"));
        }
        // Where the account names a cause, only what was measured may replace it.
        let names = |finding: &&Finding| !loss.is_named() || matches!(finding, Finding::Measured(_));
        let finding = self.findings.as_ref().map(|findings| &findings.finding).filter(names);
        let explained = finding.and_then(Finding::meaning);
        Some(explained.map_or_else(|| loss.sentence(), |meaning| loss.explained(&meaning)))
    }

    /// Formats a row for each number of workers, in thread-seconds.
    pub fn table(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut text = format!("{}:\n{:>8}", self.title(), "workers");
        for head in ["all", "user", "system", "waiting", "blocked", "absent"] {
            text.push_str(&format!("{head:>10}"));
        }
        for AccountRow { account, .. } in &self.rows {
            let Account { counted, waiting, absent, .. } = account;
            let blocked = account.asleep();
            text.push_str(&format!("\n{:>8}", counted.workers));
            for seconds in [account.whole(), counted.user, counted.system, *waiting, blocked, *absent] {
                text.push_str(&format!("{seconds:>10.3}"));
            }
            let blocked_by = account
                .parts()
                .into_iter()
                .filter(|(part, seconds)| matches!(part, TimePart::Blocked(_)) && *seconds > 0.05 * account.whole());
            for (part, seconds) in blocked_by {
                text.push_str(&format!("  {part} {seconds:.3}"));
            }
            let in_kernel = account.kernel_work().into_iter().filter(|(_, seconds)| *seconds > 0.05 * account.whole());
            for (work, seconds) in in_kernel {
                text.push_str(&format!("  system for {work} {seconds:.3}"));
            }
        }
        text.push('\n');
        text + &self.experiments().text
    }

    fn experiments(&self) -> Section {
        self.findings.as_ref().map_or_else(Section::default, section)
    }

    fn title(&self) -> String {
        let longer = (self.longer * 100.0).max(0.0);
        format!(
            "Thread-seconds (workers x time) of the run of median time. Waiting, blocked and absent are told apart by one more run, whose \
             threads were looked at; it took {longer:.0} % longer"
        )
    }

    /// Renders a bar for each number of workers, with its parts.
    pub fn html(&self) -> String {
        /// The class or colour of each kind of part, and its name.
        const KINDS: [(&str, &str); 5] = [
            ("#2f7d5b", "user"),
            ("#c2702a", "system"),
            ("#8a6fb0", "waiting for a processor"),
            ("#4a86b8", "blocked"),
            ("#b9bfc4", "not started or ended"),
        ];
        if self.rows.is_empty() {
            return String::new();
        }
        let most = self.rows.iter().map(|row| row.account.whole()).fold(f64::MIN_POSITIVE, f64::max);
        let rows: String = self
            .rows
            .iter()
            .map(|AccountRow { account, .. }| {
                let Account { counted, waiting, absent, .. } = account;
                let blocked = account.asleep();
                let bar: String = [counted.user, counted.system, *waiting, blocked, *absent]
                    .iter()
                    .zip(KINDS)
                    .map(|(seconds, (colour, name))| {
                        let width = seconds / most * 100.0;
                        format!(
                            "<span title='{name}: {seconds:.3} s' style='display:inline-block;height:1rem;width:{width:.2}%;\
                             background:{colour}'></span>"
                        )
                    })
                    .collect();
                let works: Vec<String> = account
                    .kernel_work()
                    .iter()
                    .filter(|(_, seconds)| *seconds > 0.01 * account.whole())
                    .map(|(work, seconds)| format!("{work} {seconds:.3} s"))
                    .collect();
                let parts: Vec<String> = account
                    .parts()
                    .iter()
                    .filter(|(_, seconds)| *seconds > 0.01 * account.whole())
                    .map(|(part, seconds)| match part {
                        TimePart::System if !works.is_empty() => format!("{part} {seconds:.3} s (for {})", works.join(", ")),
                        _ => format!("{part} {seconds:.3} s"),
                    })
                    .collect();
                format!(
                    "<tr><td class='number'>{}</td><td style='width:60%;white-space:nowrap'>{bar}</td><td>{}</td></tr>",
                    counted.workers,
                    escape(&parts.join(", "))
                )
            })
            .collect();
        let legend: Vec<String> =
            KINDS.iter().map(|(colour, name)| format!("<span style='color:{colour}'>■</span> {name}")).collect();
        format!(
            "<h2>Where the time of the workers went</h2><p class='soft'>{}. Without loss all bars would be equally long.</p><p>{}</p>\
             <table style='width:100%'><tr><th class='number'>Workers</th><th>Thread-seconds</th><th></th></tr>{rows}</table>{}",
            escape(&self.title()),
            legend.join(" &nbsp; "),
            self.experiments().html
        )
    }
}

impl AccountRow {
    /// Returns whether workers did not run for as long in the sampled run as in the timed one.
    fn agrees(&self) -> bool {
        let [timed, sampled] = [rest(&self.account.counted), self.sampled_rest];
        (timed - sampled).abs() <= (REST_DIFFERENCE_MAX * timed.max(sampled)).max(REST_NONE * self.account.whole())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{Moment, Seen};
    use gristmill_counters::sleep::Sleep;

    /// Runs of this many workers, whose threads ran for a second together, and slept for the rest.
    fn row(workers: u64, times: &[f64], sampled_rest: f64) -> AccountRow {
        let counted = Counted { workers, seconds: Tally::of(times).median, user: 1.0, ..Counted::default() };
        let mut seen = Seen::default();
        seen.add(&Moment { runnable: 0, asleep: vec![Sleep::Pipe; workers as usize] }, 1.0, workers);
        AccountRow { account: Account::of(counted, &seen), times: Tally::of(times), sampled_rest }
    }

    fn sentence(few: AccountRow, many: AccountRow) -> String {
        let evidence =
            Evidence { rows: vec![few, many], longer: 0.0, disturbed: false, despite_load: false, findings: None };
        evidence.sentence(2).expect("a sentence")
    }

    /// `bench/zoo.sh`'s cache: it said "there is hardly a loss to explain" of a third of the time, because the run
    /// that was looked at had lost nothing.
    #[test]
    fn a_sampled_run_that_lost_in_another_way_explains_no_loss() {
        let few = || row(1, &[1.0, 1.0, 1.01], 0.0);
        assert_eq!(
            sentence(few(), row(2, &[0.52, 0.53, 0.53], 0.5)),
            "With 2 workers there is hardly a loss to explain."
        );
        let said = sentence(few(), row(2, &[0.75, 0.75, 0.76], 0.05));
        assert!(
            said.starts_with("Why cannot be told: with 2 workers the timed runs lost 33 % of their time"),
            "{said}"
        );
        let said = sentence(few(), row(2, &[0.75, 0.75, 0.76], 0.45));
        assert!(said.contains("blocked by a pipe or socket: that is what stops them"), "{said}");
    }

    /// `bench/zoo.sh`'s tiny-tasks had an efficiency of 99 %, and a loss of 30 % in a single run.
    #[test]
    fn times_that_differ_by_as_much_as_the_loss_have_no_cause() {
        let said = sentence(row(1, &[0.9, 1.0, 1.4], 0.0), row(2, &[0.45, 0.7, 0.9], 0.4));
        assert!(
            said.starts_with("Why cannot be told: with 2 workers 29 % of their time is lost, but the times"),
            "{said}"
        );
    }
}
