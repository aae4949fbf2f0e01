//! The conclusion of a report, which the terminal, the page and JSON print.
//!
//! It is made in one place, from the curve, the failures, the load of other programs and the account, so that no
//! sentence contradicts another:
//!
//! 1. Numbers of workers at which the command failed.
//! 2. Other programs used the processors.
//! 3. Whether more workers help. If the runs were too short, nothing else is said.
//! 4. A rise before the best number, and fewer workers that take hardly longer.
//! 5. An efficiency above 100 %.
//! 6. The law.
//! 7. Does the command use the number? Asked only if nothing shows that it does.
//! 8. The cause of the loss, if there is one to explain.

use crate::diagnose::curve::{Curve, FittedLaw};
use crate::diagnose::times::Point;
use gristmill_report::text::counted;

/// Facts about the runs, other than their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// Numbers of workers at which the command failed, each with the reason.
    pub failures: Vec<Failure>,
    /// The load of other programs, if it disturbed some of the runs.
    pub load: Option<Disturbance>,
    /// The longest median in seconds, if even that is mostly the start of a process.
    pub too_short: Option<f64>,
    /// True if the work grew with the workers, and times were divided by them.
    pub is_weak: bool,
    /// True if it is unknown whether the command uses the number of workers.
    pub may_ignore_workers: bool,
    /// How many processors the command kept busy, on average, by number of workers.
    pub busy: Vec<(u64, f64)>,
    /// How many threads or processes of it there were, on average, by number of workers.
    pub threads: Vec<(u64, f64)>,
    /// The cause of the loss by the account of the workers' time, or why there is none.
    pub cause: Option<String>,
}

/// Numbers of workers at which the command failed for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The numbers of workers.
    pub workers: Vec<u64>,
    /// More about the run: the values of other parameters, or the runs that succeeded before. May be empty.
    pub run: String,
    /// The reason, without a full stop.
    pub why: String,
}

/// The load of other programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// Numbers of workers with disturbed runs.
    pub numbers: usize,
    /// All numbers of workers.
    pub of: usize,
    /// The share of the processors that others used.
    pub share: f64,
}

/// A sentence with a word for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// A word that says what this is about; it does not change when the sentence is reworded.
    pub kind: &'static str,
    /// The sentence.
    pub sentence: String,
}

/// The conclusion of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The failures, which come before everything else.
    pub failures: Vec<Statement>,
    /// Everything else, in the order in which it is read.
    pub statements: Vec<Statement>,
}

/// The efficiency from which on there is no loss to explain.
const LOSSLESS: f64 = 0.9;
/// The efficiency from which on more than the workers must have helped.
const SUPERLINEAR: f64 = 1.05;
/// The growth of processors or threads that shows that the command uses the number of workers.
const GROWN: f64 = 1.25;
/// The least growth, because a fraction of a processor may be one program that starts another.
const GROWN_MIN: f64 = 0.25;

impl Conclusion {
    /// Draws the conclusion.
    ///
    /// ```
    /// use gristmill_scale::diagnose::{Circumstances, Conclusion, Curve, Times};
    ///
    /// let (times, _) = Times::from_table("1,4.0\n2,2.0\n4,1.0\n")?;
    /// let conclusion = Conclusion::of(&Curve::of(&times)?, &Circumstances::default());
    /// assert_eq!(conclusion.statements[0].kind, "helps");
    /// assert!(conclusion.sentence().starts_with("More workers help up to 4, the most that were measured"));
    /// # Ok::<(), gristmill_scale::diagnose::Error>(())
    /// ```
    pub fn of(curve: &Curve, circumstances: &Circumstances) -> Conclusion {
        let failures = circumstances.failures.iter().map(|failure| said("failed", failure.sentence())).collect();
        let mut statements = Vec::new();
        statements.extend(circumstances.load.map(|load| said("under-load", load.sentence())));
        if circumstances.is_weak {
            statements.push(said("weak", WEAK.to_owned()));
        }
        if let Some(longest) = circumstances.too_short {
            statements.push(said("too-short", too_short(longest)));
            return Conclusion { failures, statements };
        }
        statements.push(said(curve.help().name(), curve.headline()));
        statements.extend(curve.rise().map(|sentence| said("rise", sentence)));
        statements.extend(curve.fewer().map(|sentence| said("fewer", sentence)));
        statements.extend(superlinear(curve).map(|sentence| said("superlinear", sentence)));
        statements.push(said("law", curve.law_sentence()));
        statements.extend(use_of_workers(curve, circumstances));
        statements.extend(cause(curve, circumstances));
        statements.retain(|statement| !statement.sentence.is_empty());
        Conclusion { failures, statements }
    }

    /// Returns all sentences but those about failures.
    pub fn sentence(&self) -> String {
        let all: Vec<&str> = self.statements.iter().map(|statement| statement.sentence.as_str()).collect();
        all.join(" ")
    }
}

const WEAK: &str = "The work grew with the workers, so the times are those of the work of one worker: divided by the number of workers.";

impl Failure {
    /// Returns the failure in a sentence.
    pub fn sentence(&self) -> String {
        let numbers: Vec<String> = self.workers.iter().map(ToString::to_string).collect();
        let noun = if self.workers == [1] { "worker" } else { "workers" };
        format!("With {} {noun}{} the command failed: {}.", numbers.join(", "), self.run, self.why)
    }
}

impl Disturbance {
    fn sentence(&self) -> String {
        format!(
            "The machine was under load: with {} of {} numbers of workers other programs used {:.0} % of the processors. What follows \
             may be due to them; measure again when the machine is quiet.",
            self.numbers,
            self.of,
            self.share * 100.0
        )
    }
}

fn said(kind: &'static str, sentence: String) -> Statement {
    Statement { kind, sentence }
}

fn too_short(longest: f64) -> String {
    format!(
        "The runs take {:.2} ms at most, which is mostly the start of a process: their times say nothing about workers. Give the \
         command more to do.",
        longest * 1e3
    )
}

/// Says that more was gained than the workers alone can give.
fn superlinear(curve: &Curve) -> Option<String> {
    let best = curve.points.iter().max_by(|a, b| curve.efficiency(a).total_cmp(&curve.efficiency(b)))?;
    // The time that so many workers would take without any loss.
    let share = curve.base().workers as f64 / best.workers as f64;
    let seconds = curve.base().seconds.iter().map(|seconds| seconds * share).collect();
    let lossless = Point { workers: curve.base().workers, seconds };
    if curve.efficiency(best) < SUPERLINEAR || !curve.is_faster(best, &lossless) {
        return None;
    }
    Some(format!(
        "With {} the efficiency is {:.0} %, more than the workers alone can give. Usually the data of each worker then fits into its \
         caches, or the run with {} does other work as well; the times do not tell which.",
        counted(best.workers, "worker"),
        curve.efficiency(best) * 100.0,
        counted(curve.base().workers, "worker")
    ))
}

/// Returns the first and the last of these values if they show that more workers are there.
fn grown(values: &[(u64, f64)]) -> Option<[(u64, f64); 2]> {
    let [first, .., last] = values else { return None };
    (last.1 >= first.1 * GROWN && last.1 >= first.1 + GROWN_MIN).then_some([*first, *last])
}

/// Asks whether the command uses the number of workers, or says that it does.
fn use_of_workers(curve: &Curve, circumstances: &Circumstances) -> Option<Statement> {
    if curve.verdict != FittedLaw::Flat || !circumstances.may_ignore_workers {
        return None;
    }
    if let Some([few, many]) = grown(&circumstances.busy) {
        return Some(said(
            "busier",
            format!(
                "The command keeps more processors busy with more workers ({:.1} with {}, {:.1} with {}), so it uses the number, but \
                 spends more processor time.",
                few.1, few.0, many.1, many.0
            ),
        ));
    }
    if grown(&circumstances.threads).is_some() {
        return None;
    }
    Some(said("ignored", "Does the command use the number that stands for {workers}?".to_owned()))
}

/// Returns the cause of the loss with the most workers for which there are processors.
fn cause(curve: &Curve, circumstances: &Circumstances) -> Option<Statement> {
    let cause = circumstances.cause.clone()?;
    let most = curve.points.iter().skip(1).rfind(|point| !curve.is_crowded(point.workers));
    match most.filter(|most| curve.efficiency(most) >= LOSSLESS) {
        Some(most) => Some(said(
            "no-loss",
            format!("With {} there is hardly a loss to explain.", counted(most.workers, "worker")),
        )),
        None => Some(said("cause", cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::times::Times;

    /// Three runs with each number of workers that differ by a `noise` above and below these seconds.
    fn measured(table: &[(u64, f64)], noise: f64) -> Curve {
        let mut times = Times::default();
        for (workers, seconds) in table {
            for factor in [1.0 - noise, 1.0, 1.0 + noise] {
                times.add(*workers, seconds * factor).expect("a time");
            }
        }
        Curve::of(&times).expect("there are times")
    }

    /// One run with each number of workers.
    fn once(table: &[(u64, f64)]) -> Curve {
        let mut times = Times::default();
        table.iter().for_each(|(workers, seconds)| times.add(*workers, *seconds).expect("a time"));
        Curve::of(&times).expect("there are times")
    }

    fn kinds(curve: &Curve, circumstances: &Circumstances) -> Vec<&'static str> {
        Conclusion::of(curve, circumstances).statements.iter().map(|statement| statement.kind).collect()
    }

    fn sentence(curve: &Curve) -> String {
        Conclusion::of(curve, &Circumstances::default()).sentence()
    }

    const TREE: [(u64, f64); 7] = [(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)];

    #[test]
    fn the_best_number_and_the_law_are_named() {
        let tree = sentence(&once(&TREE));
        assert!(tree.starts_with("More workers help up to 16"), "{tree}");
        assert!(tree.contains("7.8 times as fast as 1, efficiency 49 %. Beyond that the time rises."), "{tree}");
        assert!(tree.contains("coherence 0.0019 (") && tree.contains("by it, 22 ("), "{tree}");
        let reading = sentence(&once(&[(1, 70.2), (2, 35.9), (5, 15.3), (10, 9.10), (15, 8.93), (20, 8.08)]));
        assert!(reading.contains("A curve that bends at about 8 workers describes the times better"), "{reading}");
        assert_eq!(sentence(&once(&[(4, 2.0)])), "Only one number of workers was measured: 4.");
        assert_eq!(
            sentence(&once(&[(1, 4.0), (2, 2.0), (4, 1.0)])),
            "More workers help up to 4, the most that were measured: 4.0 times as fast as 1, efficiency 100 %. \
             The curve alone cannot tell more: 3 numbers of workers were measured, a law needs 5 or more."
        );
        assert!(sentence(&once(&[(1, 1.0), (2, 1.3), (4, 2.0)])).starts_with("More workers than 1 make it slower."));
    }

    /// Times that were measured once were said to follow a law as surely as those of many runs.
    #[test]
    fn where_nothing_ran_twice_the_law_is_said_to_be_untested() {
        let untested = sentence(&once(&TREE));
        assert!(untested.contains("Of the known laws, the universal scalability law comes nearest"), "{untested}");
        assert!(
            untested.ends_with("Nothing ran twice, so it was not tested whether the times follow it."),
            "{untested}"
        );
        let tested = sentence(&measured(&TREE, 0.1));
        assert!(
            tested.contains("It follows the universal scalability law") && !tested.contains("twice, so"),
            "{tested}"
        );
    }

    /// "More workers help up to 2: 1.0 times as fast as 1", of times which the page below called unclear.
    #[test]
    fn a_difference_within_the_noise_is_no_gain() {
        let curve = measured(&[(1, 1.0), (2, 0.97)], 0.2);
        assert_eq!(kinds(&curve, &Circumstances::default()), ["unclear", "law"]);
        let said = sentence(&curve);
        assert!(
            said.starts_with("Whether more workers help cannot be told, because the times vary too much"),
            "{said}"
        );
        let said = sentence(&measured(&[(1, 1.0), (2, 0.93), (4, 0.94)], 0.002));
        assert!(
            said.starts_with("More workers than 1 hardly help: the shortest time, that of 2, is 7 % shorter"),
            "{said}"
        );
        let said = sentence(&measured(&[(1, 1.0), (2, 0.5), (4, 0.46)], 0.1));
        assert!(
            said.starts_with("More workers help up to 2: 2.0 times as fast as 1, efficiency 100 %. From 2 to 4"),
            "{said}"
        );
    }

    /// Half of the processors were on a second NUMA node. 64 workers, as fast as 32, were said to be what more workers
    /// help up to, though 48 were slower.
    #[test]
    fn workers_that_only_make_up_for_a_loss_do_not_help() {
        let said = sentence(&measured(&[(1, 32.0), (8, 4.0), (16, 2.0), (32, 1.0), (48, 1.33), (64, 0.995)], 0.01));
        assert!(said.starts_with("More workers help up to 32: 32.0 times as fast as 1, efficiency 100 %. From 32 to 64 the time rises and"), "{said}");
    }

    /// "More workers help up to 8" was said of times in which 4 workers are far slower than 2, and 2 nearly as fast as
    /// 8.
    #[test]
    fn a_rise_before_the_best_number_and_fewer_workers_that_take_hardly_longer_are_named() {
        let table = [(1, 10.0), (2, 5.0), (4, 9.0), (8, 4.8), (16, 12.0)];
        for curve in [once(&table), measured(&table, 0.005)] {
            let said = sentence(&curve);
            assert!(
                said.starts_with(
                    "More workers help up to 8: 2.1 times as fast as 1, efficiency 26 %. Beyond that the time rises."
                ),
                "{said}"
            );
            assert!(
                said.contains(" With 4 workers it takes longer than with 2. 2 workers take 4 % longer than 8. "),
                "{said}"
            );
            assert_eq!(kinds(&curve, &Circumstances::default())[..3], ["helps", "rise", "fewer"]);
        }
        let said = sentence(&once(&[(1, 5.0), (2, 9.0), (4, 5.0), (8, 2.0)]));
        assert!(said.contains(" With 2 workers it takes longer than with 1. ") && !said.contains("% longer"), "{said}");
        // The highest rise counts.
        let said = sentence(&once(&[(1, 5.0), (2, 5.5), (4, 4.0), (8, 9.0), (16, 2.0)]));
        assert!(said.contains("With 8 workers it takes longer than with 4."), "{said}");
        // Such rises are noise, and a curve that only falls has none.
        for curve in
            [measured(&[(1, 5.0), (2, 5.5), (4, 2.0)], 0.2), once(&[(1, 8.0), (2, 4.0), (4, 2.0)]), once(&TREE)]
        {
            let kinds = kinds(&curve, &Circumstances::default());
            assert!(!kinds.contains(&"rise") && !kinds.contains(&"fewer"), "{kinds:?}");
        }
    }

    /// "The shortest time is that of 4 (between 4 and 16)": nobody understood the bracket.
    #[test]
    fn the_interval_of_the_best_number_is_written_out() {
        let said = sentence(&measured(&[(1, 8.0), (2, 4.0), (4, 2.0), (8, 2.05), (16, 2.04)], 0.03));
        assert!(said.contains(" The best number lies between 4 and 16 in nine of ten cases. "), "{said}");
        assert!(!said.contains("(between"), "{said}");
    }

    /// "The times vary too much, or too little from one number to the next, to say up to how many" was said of both.
    #[test]
    fn times_that_vary_too_much_and_times_that_hardly_fall_are_told_apart() {
        let said = sentence(&once(&[(1, 10.0), (2, 9.3), (4, 8.7), (8, 8.1)]));
        assert!(said.starts_with("More workers help slowly: where they double, they gain less than a tenth. The shortest time is that of 8, 1.2 times as fast as 1, efficiency 15 %."), "{said}");
        let said = sentence(&measured(&[(1, 10.0), (2, 8.4), (4, 7.0), (8, 6.0)], 0.2));
        assert!(said.starts_with("More workers help, but the times vary too much to say up to how many; the shortest median is that of 8, "), "{said}");
    }

    /// Perfect scaling was said to "still help a little".
    #[test]
    fn the_gain_of_twice_the_workers_is_said_in_numbers() {
        let perfect = measured(&[1, 2, 4, 8, 16].map(|workers| (workers, 16.0 / workers as f64)), 0.01);
        assert!(
            sentence(&perfect).ends_with("twice as many workers, each with a processor, would take 50 % of the time.")
        );
        let serial = measured(&[1, 2, 4, 8, 16, 32].map(|workers| (workers, 3.0 + 7.0 / workers as f64)), 0.01);
        assert!(sentence(&serial).contains("more workers would gain little: twice as many, "), "{}", sentence(&serial));
    }

    /// An efficiency of 146 % was printed without a word.
    #[test]
    fn an_efficiency_above_100_percent_is_named() {
        let said = sentence(&measured(&[(1, 8.0), (2, 3.0), (4, 1.37)], 0.01));
        assert!(
            said.contains("With 4 workers the efficiency is 146 %, more than the workers alone can give."),
            "{said}"
        );
        // Within the noise it is none.
        let noisy = measured(&[(1, 8.0), (2, 3.7), (4, 2.0)], 0.1);
        assert!(!kinds(&noisy, &Circumstances::default()).contains(&"superlinear"));
    }

    /// "Why cannot be told: other programs used the processors" stood below an efficiency of 99 %.
    #[test]
    fn where_nothing_is_lost_no_cause_is_missing() {
        let cause = |cause: &str| Circumstances { cause: Some(cause.to_owned()), ..Circumstances::default() };
        let circumstances = cause("Why cannot be told: other programs used the processors.");
        let curve = measured(&[(1, 4.0), (2, 2.02)], 0.01);
        assert_eq!(kinds(&curve, &circumstances), ["helps", "law", "no-loss"]);
        let curve = measured(&[(1, 4.0), (2, 3.0)], 0.01);
        assert_eq!(kinds(&curve, &circumstances), ["helps", "law", "cause"]);
    }

    /// A user was asked whether the command uses the number, below a table in which it used a processor for each
    /// worker.
    #[test]
    fn whether_the_command_uses_the_number_is_asked_only_if_nothing_shows_it() {
        let flat = measured(&[(1, 1.0), (2, 1.0), (4, 1.0)], 0.01);
        let with = |busy: [f64; 2], threads: [f64; 2]| {
            let [busy, threads] = [busy, threads].map(|[few, many]| vec![(1, few), (4, many)]);
            kinds(&flat, &Circumstances { busy, threads, may_ignore_workers: true, ..Circumstances::default() })
        };
        assert_eq!(with([1.0, 1.0], [1.0, 1.0]), ["flat", "ignored"]);
        assert_eq!(with([0.0, 0.01], [1.0, 1.0]), ["flat", "ignored"]);
        assert_eq!(with([1.0, 3.9], [1.0, 4.0]), ["flat", "busier"]);
        assert_eq!(with([1.0, 1.0], [1.0, 3.9]), ["flat"]);
        assert_eq!(kinds(&flat, &Circumstances::default()), ["flat"]);
    }

    #[test]
    fn runs_that_are_too_short_say_nothing_else() {
        let circumstances = Circumstances { too_short: Some(0.004), is_weak: true, ..Circumstances::default() };
        assert_eq!(kinds(&once(&TREE), &circumstances), ["weak", "too-short"]);
    }
}
