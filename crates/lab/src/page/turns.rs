//! Several ways to do the same, run in turn, and the verdict that such runs allow.

use gristmill_cli::Failure;
use gristmill_counters::load::{Load, Watch};
use gristmill_report::chart::milliseconds;
use gristmill_report::tally::Tally;

use super::Judgement;

/// Fewer rounds give no verdict.
pub const ROUNDS_MIN: usize = 3;

/// The runs of several ways.
pub struct Turns<T> {
    /// For each way, its runs, one for each round.
    runs: Vec<Vec<T>>,
    /// For each round, the load of other programs, if the machine reports it.
    loads: Vec<Option<Load>>,
}

impl<T> Turns<T> {
    /// Runs every way once as a warm-up, then `rounds` times in turn. Each round begins with another way. Rounds that
    /// other programs disturbed are made again, at most as many as were asked for.
    pub fn take(
        ways: usize,
        rounds: u32,
        mut run: impl FnMut(usize) -> Result<T, Failure>,
    ) -> Result<Turns<T>, Failure> {
        let rounds = rounds as usize;
        (0..ways).try_for_each(|way| run(way).map(drop))?;
        let mut turns = Turns { runs: (0..ways).map(|_| Vec::new()).collect(), loads: Vec::new() };
        let mut left_to_repeat = rounds;
        while turns.loads.len() < rounds {
            let watch = Watch::start();
            let first = turns.loads.len() % ways;
            let mut round: Vec<Option<T>> = (0..ways).map(|_| None).collect();
            for way in (first..ways).chain(0..first) {
                round[way] = Some(run(way)?);
            }
            let load = watch.load();
            if left_to_repeat > 0 && load.is_some_and(|load| load.disturbs()) {
                left_to_repeat -= 1;
                continue;
            }
            turns.loads.push(load);
            turns.runs.iter_mut().zip(round).for_each(|(runs, run)| runs.extend(run));
        }
        Ok(turns)
    }

    /// The runs of a way.
    pub fn of(&self, way: usize) -> &[T] {
        &self.runs[way]
    }

    /// Returns the tally of a value over the runs of a way.
    pub fn tally(&self, way: usize, value: impl Fn(&T) -> f64) -> Tally {
        Tally::of(&self.runs[way].iter().map(value).collect::<Vec<_>>())
    }

    /// Returns the verdict if these runs allow one: there are three rounds or more, and no other programs disturbed
    /// them.
    pub fn allow(&self, verdict: Judgement) -> Judgement {
        let disturbed = self.loads.iter().flatten().filter(|load| load.disturbs()).copied();
        allowed(self.loads.len(), Load::mean(disturbed), verdict)
    }
}

/// Returns a verdict over so many rounds under this load of others, if there was one that disturbs.
pub fn allowed(rounds: usize, load: Option<Load>, verdict: Judgement) -> Judgement {
    match load {
        _ if !matches!(verdict, Judgement::Agrees | Judgement::Differs(_)) => verdict,
        _ if rounds < ROUNDS_MIN => Judgement::Undecided(format!("fewer than three rounds ({rounds})")),
        Some(load) => under(load),
        None => verdict,
    }
}

/// Returns the verdict on what was measured under this load of others.
pub fn under(load: Load) -> Judgement {
    Judgement::Undecided(format!(
        "measured under load: other programs used {:.0} % of the processors",
        load.foreign * 100.0
    ))
}

/// Formats a median time, and the least and the greatest, from milliseconds.
pub fn spread(tally: &Tally) -> String {
    let [least, median, most] = [tally.least, tally.median, tally.most].map(milliseconds);
    format!("{median} ({least} to {most})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_way_after_a_warm_up() {
        let mut order = Vec::new();
        let turns = Turns::take(3, 2, |way| {
            order.push(way);
            Ok(way * 10)
        })
        .expect("nothing fails");
        // A round that this machine's load disturbed is made again, from the same way on.
        assert_eq!(order[..6], [0, 1, 2, 0, 1, 2]);
        assert_eq!(order[order.len() - 3..], [1, 2, 0]);
        assert_eq!((turns.of(2), turns.tally(1, |run| *run as f64).median), (&[20, 20][..], 10.0));
    }

    #[test]
    fn few_rounds_and_load_leave_a_verdict_open_and_what_cannot_be_asked_as_it_is() {
        let load = |foreign| Some(Load { foreign, stolen: 0.0, foreign_least: foreign });
        let words = |rounds, load, verdict: Judgement| allowed(rounds, load, verdict).words().0;
        assert_eq!(words(3, None, Judgement::Agrees), "agrees");
        assert_eq!(words(2, None, Judgement::Agrees), "undecided");
        assert_eq!(words(3, load(0.4), Judgement::Differs("it is slower".into())), "undecided");
        assert_eq!(words(1, load(0.4), Judgement::CannotBeAsked("one node".into())), "cannot be asked here");
        let Judgement::Undecided(why) = allowed(3, load(0.4), Judgement::Agrees) else { panic!("it is open") };
        assert_eq!(why, "measured under load: other programs used 40 % of the processors");
    }
}
