//! Conclusions from the runs of a comparison: a sentence for each application, and one for all of them.

use gristmill_counters::load::Load;
use gristmill_report::tally::Tally;

use super::chart::{self, Bar};
use super::comparison::{Comparison, Kind};
use super::time::Time;
use super::trial::{Contest, Measure};
use super::verdict::Fastest;

/// The tolerated slowdown of the plan against the best fixed strategy.
const PLAN_TOLERANCE: f64 = 0.03;

/// A trial with runs of at least two strategies, and its verdict.
pub struct Judged<'e> {
    pub trial: &'e Contest<'e>,
    /// The strategies that ran, as indexes into those of the trial, with their times.
    pub ran: Vec<(usize, Tally)>,
    /// The verdict; its places are indexes into `ran`.
    pub verdict: Fastest,
    /// The load of other programs, if it disturbed runs that count.
    pub load: Option<Load>,
}

impl<'e> Judged<'e> {
    pub fn new(trial: &'e Contest<'e>, by: Time) -> Option<Judged<'e>> {
        let measure = match by {
            Time::Wall => Measure::WallMs,
            Time::Processor => Measure::CpuMs,
        };
        let ran: Vec<(usize, Tally)> =
            (0..trial.variants.len()).filter_map(|variant| Some((variant, trial.tally(variant, measure)?))).collect();
        if ran.len() < 2 {
            return None;
        }
        let tallies: Vec<Tally> = ran.iter().map(|(_, tally)| *tally).collect();
        Some(Judged { trial, verdict: Fastest::of(&tallies), ran, load: trial.load() })
    }

    pub fn name(&self, place: usize) -> &str {
        &self.trial.variants[self.ran[place].0].name
    }

    pub fn bars(&self) -> String {
        let bars: Vec<Bar<'_>> = (0..self.ran.len())
            .map(|place| Bar {
                name: self.name(place),
                tally: self.ran[place].1,
                is_first: self.verdict.first.contains(&place),
            })
            .collect();
        chart::bars(&bars)
    }

    pub fn curve(&self, processors: usize) -> String {
        let points: Vec<(f64, Tally)> = (0..self.ran.len())
            .map(|place| (self.name(place).parse().expect("a number of workers"), self.ran[place].1))
            .collect();
        chart::curve(&points, processors)
    }

    /// Formats `hash is fastest; the next takes 1.80× as long`.
    fn fastest(&self) -> String {
        let names: Vec<&str> = self.verdict.first.iter().map(|place| self.name(*place)).collect();
        let of_workers = self.trial.comparison.kind == Kind::Workers;
        let names = match &names[..] {
            ["1"] if of_workers => "it is fastest with 1 worker".to_owned(),
            [one] if of_workers => format!("it is fastest with {one} workers"),
            [one] => format!("{one} is fastest"),
            all if all.len() == self.ran.len() => return "no difference: the spreads overlap".to_owned(),
            [before @ .., last] => {
                let noun = if of_workers { " workers" } else { "" };
                format!("no difference between {} and {last}{noun}", before.join(", "))
            }
            [] => unreachable!("one of two or more is fastest"),
        };
        match self.verdict.ahead {
            Some(ahead) => format!("{names}; the next takes {:.2}× as long", 1.0 + ahead),
            None => names,
        }
    }

    /// Returns how much slower the plan (the first strategy) is than the best other one, that one's name, and whether
    /// this is within the tolerance.
    pub fn plan(&self) -> Option<(f64, &str, bool)> {
        let (0, plan) = self.ran[0] else { return None };
        let fixed = (1..self.ran.len()).min_by(|a, b| self.ran[*a].1.median.total_cmp(&self.ran[*b].1.median))?;
        let more = plan.median / self.ran[fixed].1.median - 1.0;
        Some((more, self.name(fixed), more <= PLAN_TOLERANCE || self.verdict.first.contains(&0)))
    }

    /// Returns the sentence below the chart.
    pub fn caption(&self) -> String {
        let said = match (self.trial.comparison.kind, self.plan()) {
            (Kind::Plan, Some((more, best, enough))) => format!(
                "the plan takes {:+.1} % against the best fixed strategy, {best}: {}",
                more * 100.0,
                match enough {
                    true if more <= PLAN_TOLERANCE => "good enough",
                    true => "the spreads overlap",
                    false => "too slow",
                }
            ),
            _ => self.fastest(),
        };
        sentence(&said, self.load.as_slice())
    }

    /// Returns the efficiency with `workers` as thread bottlenecks (Chen 2020) defines it: E = (T1 / Tk) / k.
    fn efficiency(&self, workers: usize) -> Option<f64> {
        let median = |workers: usize| {
            let place = (0..self.ran.len()).find(|place| self.name(*place) == workers.to_string())?;
            Some(self.ran[place].1.median)
        };
        Some(median(1)? / median(workers)? / workers as f64)
    }
}

/// Formats `other programs used 31 % of the processors, 5 % went to other virtual machines`, or ranges for several
/// loads.
pub fn taken(loads: &[Load]) -> String {
    let range = |share: fn(&Load) -> f64| {
        let percent = loads.iter().map(|load| (share(load) * 100.0).round());
        let (least, most) = (percent.clone().fold(f64::INFINITY, f64::min), percent.fold(0.0, f64::max));
        (most, if least == most { format!("{most} %") } else { format!("{least} to {most} %") })
    };
    let ((_, foreign), (most_stolen, stolen)) = (range(|load| load.foreign), range(|load| load.stolen));
    match most_stolen {
        0.0 => format!("other programs used {foreign} of the processors"),
        _ => format!(
            "other programs used {foreign} of the processors, including {stolen} stolen by other virtual machines"
        ),
    }
}

/// Capitalises the conclusion and adds a full stop. If the machine was under load, the sentence begins with that.
fn sentence(said: &str, loads: &[Load]) -> String {
    let mut whole = match loads {
        [] => format!("{said}."),
        _ => format!("on a machine under load ({}): {said}.", taken(loads)),
    };
    if let Some(first) = whole.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    whole
}

/// Returns the conclusion of the comparison, one sentence about all applications. `tried` of them ran; those in
/// `trials` have times of two strategies.
pub fn conclusion(comparison: &Comparison, trials: &[&Judged<'_>], tried: usize, processors: usize) -> String {
    let loads: Vec<Load> = trials.iter().filter_map(|judged| judged.load).collect();
    let said = match (trials, comparison.kind) {
        ([], _) if tried > 0 => "nothing could be compared, because runs failed (see “What failed”)".to_owned(),
        ([], _) => "nothing was compared: none of the chosen applications runs with two of these strategies".to_owned(),
        (_, Kind::Plan) => of_the_plan(trials),
        (_, Kind::Workers) => of_workers(trials, processors),
        ([one], _) => format!("{}: {}", one.trial.subject.workload.title, one.fastest()),
        _ => of_strategies(comparison, trials),
    };
    sentence(&said, &loads)
}

fn of_the_plan(trials: &[&Judged<'_>]) -> String {
    let enough = trials.iter().filter(|judged| judged.plan().is_some_and(|(_, _, enough)| enough)).count();
    format!(
        "the plan is within {:.0} % of the best fixed strategy, or their spreads overlap, in {enough} of {}",
        PLAN_TOLERANCE * 100.0,
        applications(trials.len())
    )
}

/// Judges the most workers for which each has a processor.
fn of_workers(trials: &[&Judged<'_>], processors: usize) -> String {
    let workers = 1 << processors.max(2).ilog2();
    let mut efficiencies: Vec<f64> = trials.iter().filter_map(|judged| judged.efficiency(workers)).collect();
    efficiencies.sort_by(f64::total_cmp);
    let percent = |efficiency: &f64| format!("{:.0}", efficiency * 100.0);
    let range = match (efficiencies.first().map(percent), efficiencies.last().map(percent)) {
        (Some(least), Some(most)) if least == most => format!("{most} %"),
        (Some(least), Some(most)) => format!("{least} to {most} %"),
        _ => {
            return format!(
                "efficiency is unknown, because the runs with 1 or with {workers} workers failed (see “What failed”)"
            );
        }
    };
    format!(
        "with {workers} workers, efficiency (the time of one worker, divided by workers and time) is {range}, on {processors} {}",
        if processors == 1 { "processor" } else { "processors" }
    )
}

fn of_strategies(comparison: &Comparison, trials: &[&Judged<'_>]) -> String {
    let alone = |variant: &str| {
        let is_first = |judged: &&&Judged<'_>| matches!(judged.verdict.first[..], [one] if judged.name(one) == variant);
        trials.iter().filter(is_first).count()
    };
    let mut wins: Vec<(usize, &str)> =
        comparison.variants.iter().map(|variant| (alone(&variant.name), &variant.name[..])).collect();
    wins.retain(|(count, _)| *count > 0);
    wins.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let level = trials.len() - wins.iter().map(|(count, _)| count).sum::<usize>();
    let mut parts: Vec<String> = wins.iter().map(|(count, name)| format!("{name} is fastest in {count}")).collect();
    match (level, &mut parts[..]) {
        (_, []) => return format!("in none of {} is one strategy faster than all others", applications(trials.len())),
        (_, [first, ..]) => *first += &format!(" of {}", applications(trials.len())),
    }
    if level > 0 {
        parts.push(format!("no strategy in {level}"));
    }
    parts.join(", ")
}

fn applications(count: usize) -> String {
    format!("{count} {}", if count == 1 { "application" } else { "applications" })
}

/// Returns the conclusion about start-up: the range of its share of the whole time.
pub fn of_start_up(shares: &[f64], loads: &[Load]) -> String {
    let (least, most) =
        (shares.iter().copied().fold(f64::INFINITY, f64::min), shares.iter().copied().fold(0.0, f64::max));
    let said = match shares {
        [] => "the share of start-up is unknown, because no run left statistics".to_owned(),
        _ => format!("start-up takes {:.1} to {:.1} % of the time", least * 100.0, most * 100.0),
    };
    sentence(&said, loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_mentions_that_the_machine_was_under_load() {
        let load = |foreign, stolen| Load { foreign, stolen, foreign_least: foreign };
        assert_eq!(sentence("hash is fastest", &[]), "Hash is fastest.");
        assert_eq!(
            sentence("hash is fastest", &[load(0.312, 0.0)]),
            "On a machine under load (other programs used 31 % of the processors): hash is fastest."
        );
        assert_eq!(
            taken(&[load(0.5, 0.0), load(0.25, 0.1)]),
            "other programs used 25 to 50 % of the processors, including 0 to 10 % stolen by other virtual machines"
        );
    }
}
