//! One more run with each number of workers, in which its threads are sampled.
//!
//! These runs are not timed, because sampling takes time. The first sample is taken at once, the next ones every 5
//! ms, or less often if there are so many threads that sampling would take more than a tenth of the time.

use std::fmt::Write;
use std::io;

use gristmill_diagnose::{Account, Cause, Counted, Findings, Loss, Part};

use super::command::{End, Once, Program};
use super::experiments::section;
use super::look::Look;
use super::runs::Series;
use super::section::Section;
use crate::experiment::chart::escape;

/// The accounts of all numbers of workers that ran.
pub struct Evidence {
    pub accounts: Vec<Account>,
    /// For each account, the median of the timed runs in seconds.
    timed: Vec<f64>,
    /// The average slowdown against the timed runs: 0.03 is three percent.
    longer: f64,
    /// True if other programs took too much of the processors.
    pub disturbed: bool,
    /// What experiments showed of the loss, if any were made.
    pub findings: Option<Findings>,
}

/// Runs once with each number of workers that has not failed. Returns a signal if this program was asked to end.
pub fn gather(program: &Program, all: &[Series], mut begins: impl FnMut(u64)) -> io::Result<Result<Evidence, i32>> {
    let mut evidence =
        Evidence { accounts: Vec::new(), timed: Vec::new(), longer: 0.0, disturbed: false, findings: None };
    let (mut timed, mut watched) = (0.0, 0.0);
    for series in all.iter().filter(|series| series.failure.is_none() && !series.runs.is_empty()) {
        begins(series.workers);
        let (run, look) = match sampled(program, series.workers)? {
            Ok(run) => run,
            Err(End::Stopped(signal)) => return Ok(Err(signal)),
            // It succeeded before; it just has no account.
            Err(_) => continue,
        };
        timed += series.runs.iter().map(|run| run.seconds).sum::<f64>() / series.runs.len() as f64;
        watched += run.seconds;
        evidence.disturbed |= run.load.is_some_and(|load| load.disturbs());
        evidence.accounts.push(account(series.workers, &run, look));
        evidence.timed.extend(series.median());
    }
    evidence.longer = if timed > 0.0 { watched / timed - 1.0 } else { 0.0 };
    Ok(Ok(evidence))
}

/// Runs until other programs do not disturb, or often enough, and returns the least disturbed run with its samples.
fn sampled(program: &Program, workers: u64) -> io::Result<Result<(Once, Look), End>> {
    let mut best: Option<(Once, Look)> = None;
    for _ in 0..ATTEMPTS {
        let mut look = Look::new(workers);
        let run = match program.watch(workers, &mut look)? {
            End::Done(run) => run,
            End::Stopped(signal) => return Ok(Err(End::Stopped(signal))),
            failed => return Ok(best.ok_or(failed)),
        };
        let foreign = |run: &Once| run.load.map_or(0.0, |load| load.foreign_least);
        if best.as_ref().is_none_or(|(other, _)| foreign(&run) < foreign(other)) {
            best = Some((run, look));
        }
        if !run.load.is_some_and(|load| load.disturbs()) {
            break;
        }
    }
    Ok(Ok(best.expect("there is at least one attempt")))
}

fn account(workers: u64, run: &Once, look: Look) -> Account {
    let counted = Counted {
        workers,
        seconds: run.seconds,
        user: run.usage.user_us as f64 / 1e6,
        system: run.usage.sys_us as f64 / 1e6,
        faults: run.usage.minor_faults,
        waits: run.usage.voluntary_switches,
    };
    Account::of(counted, &look.seen())
}

/// How often a disturbed run is made at most.
const ATTEMPTS: usize = 3;
/// Runs shorter than this have too few samples.
const SECONDS_MIN: f64 = 0.05;
/// The smallest loss of the timed runs, as a share of their time, that the run whose threads were looked at must have, too.
const TIMED_LOSS_MIN: f64 = 0.15;

impl Evidence {
    /// Returns the accounts of the fewest workers, and of the most for which there are processors.
    fn compared(&self, processors: u64) -> Option<(&Account, &Account)> {
        let few = self.accounts.first()?;
        let room = self.accounts.iter().rev().find(|account| account.counted.workers <= processors);
        Some((few, room.filter(|many| many.counted.workers > few.counted.workers)?))
    }

    /// Returns the loss with the most workers for which there are processors, and how many processors the fewest keep busy.
    /// `None` if nothing can be said of it.
    pub fn loss(&self, processors: u64) -> Option<(Loss, f64)> {
        let (few, many) = self.compared(processors).filter(|_| !self.disturbed)?;
        let is_long = many.counted.seconds >= SECONDS_MIN && few.counted.seconds >= SECONDS_MIN;
        is_long.then(|| (Loss::of(few, many), few.busy()))
    }

    /// Returns the loss of the timed runs as a share of their time, for the numbers of workers that [`Evidence::loss`] compares.
    fn timed_loss(&self, processors: u64) -> f64 {
        let whole = |account: &Account| {
            let at = self.accounts.iter().position(|other| other.counted.workers == account.counted.workers);
            account.counted.workers as f64 * at.and_then(|at| self.timed.get(at)).copied().unwrap_or(0.0)
        };
        self.compared(processors).map_or(0.0, |(few, many)| 1.0 - whole(few) / whole(many).max(f64::MIN_POSITIVE))
    }

    /// Returns the loss and its cause.
    pub fn sentence(&self, processors: u64) -> Option<String> {
        self.compared(processors)?;
        Some(match (self.loss(processors), &self.findings) {
            (Some((loss, _)), _) if loss.cause == Cause::None && self.timed_loss(processors) >= TIMED_LOSS_MIN => {
                let (workers, share) = (loss.workers, self.timed_loss(processors) * 100.0);
                format!(
                    "Why cannot be told: with {workers} workers the timed runs lost {share:.0} % of their time, and the run that was \
                     looked at lost hardly anything. Other programs may have disturbed some of them: try it again."
                )
            }
            (Some((loss, _)), Some(findings)) => {
                findings.finding.meaning().map_or_else(|| loss.sentence(), |meaning| loss.explained(&meaning))
            }
            (Some((loss, _)), None) => loss.sentence(),
            (None, _) if self.disturbed => {
                "Why cannot be told: other programs used the processors during the runs that would say it.".to_owned()
            }
            (None, _) => {
                "Why cannot be told: the runs are too short to be looked at. Give the command more to do.".to_owned()
            }
        })
    }

    /// Formats a row for each number of workers, in thread-seconds.
    pub fn table(&self) -> String {
        if self.accounts.is_empty() {
            return String::new();
        }
        let mut text = format!("{}:\n{:>8}", self.title(), "workers");
        for head in ["all", "user", "system", "waiting", "blocked", "absent"] {
            write!(text, "{head:>10}").expect("a string takes everything");
        }
        for account in &self.accounts {
            let Account { counted, waiting, absent, .. } = account;
            let blocked: f64 = account.blocked.iter().sum();
            write!(text, "\n{:>8}", counted.workers).expect("a string takes everything");
            for seconds in [account.whole(), counted.user, counted.system, *waiting, blocked, *absent] {
                write!(text, "{seconds:>10.3}").expect("a string takes everything");
            }
            let blocked_by = account
                .parts()
                .into_iter()
                .filter(|(part, seconds)| matches!(part, Part::Blocked(_)) && *seconds > 0.05 * account.whole());
            for (part, seconds) in blocked_by {
                write!(text, "  {part} {seconds:.3}").expect("a string takes everything");
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
            "Thread-seconds (workers x time) of one more run each, whose threads were looked at; it took {longer:.0} % longer"
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
        if self.accounts.is_empty() {
            return String::new();
        }
        let most = self.accounts.iter().map(Account::whole).fold(f64::MIN_POSITIVE, f64::max);
        let rows: String = self
            .accounts
            .iter()
            .map(|account| {
                let Account { counted, waiting, absent, .. } = account;
                let blocked: f64 = account.blocked.iter().sum();
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
                let parts: Vec<String> = account
                    .parts()
                    .iter()
                    .filter(|(_, seconds)| *seconds > 0.01 * account.whole())
                    .map(|(part, seconds)| format!("{part} {seconds:.3} s"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_diagnose::Seen;

    /// `bench/zoo.sh`'s cache: it said "there is hardly a loss to explain" of a third of the time.
    #[test]
    fn a_loss_that_only_the_timed_runs_had_is_not_explained_by_another_run() {
        let account = |workers, seconds| {
            let user = workers as f64 * seconds;
            Account::of(Counted { workers, seconds, user, ..Counted::default() }, &Seen::default())
        };
        let accounts = vec![account(1, 1.0), account(2, 0.51)];
        let of = |timed| {
            let accounts = accounts.clone();
            Evidence { accounts, timed, longer: 0.0, disturbed: false, findings: None }.sentence(2).expect("a sentence")
        };
        assert_eq!(of(vec![1.0, 0.52]), "With 2 workers there is hardly a loss to explain.");
        let said = of(vec![1.0, 0.75]);
        assert!(
            said.starts_with("Why cannot be told: with 2 workers the timed runs lost 33 % of their time"),
            "{said}"
        );
    }
}
