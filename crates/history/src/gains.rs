//! The gain of choosing the programs that run together, run by run.

use gristmill_schedule::is_chosen;
use rusqlite::params;

use crate::file::{History, Problem};

/// The reason of a decision by which programs were chosen.
pub const CHOSEN: &str = "chosen";

/// The successful runs of a program with the same input, on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The program: its name and a digest of its file.
    pub build: String,
    /// The host.
    pub host: String,
    /// The runs, the first one first.
    pub runs: Vec<Repeat>,
}

/// A run among those with the same input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    /// Processor time of the program, in seconds. It grows where programs wait for each other's memory.
    pub processor_seconds: f64,
    /// Whether the scheduler (true) or the operating system (false) decided when it ran; `None` if each did for a part
    /// of the time.
    pub is_chosen: Option<bool>,
}

impl Repeated {
    /// The mean processor time in the system's order, in seconds; `None` without such a run.
    pub fn usual_seconds(&self) -> Option<f64> {
        self.mean_seconds(false)
    }

    /// The mean processor time of chosen runs, in seconds; `None` without one.
    pub fn chosen_seconds(&self) -> Option<f64> {
        self.mean_seconds(true)
    }

    fn mean_seconds(&self, is_chosen: bool) -> Option<f64> {
        let of = self.runs.iter().filter(|run| run.is_chosen == Some(is_chosen)).map(|run| run.processor_seconds);
        let (count, sum) = of.fold((0, 0.0), |(count, sum), seconds| (count + 1, sum + seconds));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The share of processor time that each run saved, against the mean in the system's order. Nothing without such a
    /// mean.
    pub fn saved(&self) -> Vec<f64> {
        let usual = self.usual_seconds().filter(|usual| *usual > 0.0);
        usual.map_or_else(Vec::new, |usual| self.runs.iter().map(|run| 1.0 - run.processor_seconds / usual).collect())
    }
}

impl History {
    /// Returns in how many quanta programs were chosen, and of how many, in all queues that ran with `--by-bandwidth`
    /// and are remembered.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn quanta(&self) -> Result<[u64; 2], Problem> {
        let select =
            "select coalesce(sum(quanta) filter (where reason = ?1), 0), coalesce(sum(quanta), 0) from decisions";
        Ok(self
            .connection
            .query_row(select, [CHOSEN], |row| Ok([row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64]))?)
    }

    /// Returns the runs of all programs, or of those of this name or build, by input and host.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn repeated(&self, of: Option<&str>) -> Result<Vec<Repeated>, Problem> {
        let mut select = self.connection.prepare(
            "select build, hosts.name, input, user_seconds + system_seconds, chosen \
             from runs join programs on program = programs.id join hosts on host = hosts.id \
             where outcome = 'exit 0' and (?1 is null or programs.name = ?1 or build = ?1) \
             order by build, hosts.name, input, began_ms, runs.id",
        )?;
        let mut all: Vec<Repeated> = Vec::new();
        let mut last = String::new();
        let mut rows = select.query(params![of])?;
        while let Some(row) = rows.next()? {
            let (build, host, input): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let key = format!("{build} {host} {input}");
            if key != last || all.is_empty() {
                all.push(Repeated { build, host, runs: Vec::new() });
                last = key;
            }
            let run = Repeat { processor_seconds: row.get(3)?, is_chosen: is_chosen(row.get(4)?) };
            all.last_mut().expect("it was just added").runs.push(run);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PastRun;
    use crate::runs::tests::run;

    #[test]
    fn runs_are_compared_with_those_in_the_systems_order_of_the_same_program_and_input() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let took = |user_seconds: f64, chosen: f64, began_ms: u64| PastRun {
            user_seconds,
            system_seconds: 1.0,
            chosen,
            began_ms,
            ..run("a", 9.0)
        };
        let other = PastRun { input: "j".into(), ..took(50.0, 1.0, 0) };
        let failed = PastRun { outcome: "exit 1".into(), ..took(70.0, 0.0, 1) };
        // They are added in another order than they began in.
        let runs = [took(2.0, 0.9, 3), took(3.0, 0.0, 1), took(5.0, 0.05, 2), took(9.0, 0.4, 4), other, failed];
        history.add_runs("here", &runs).expect("added");
        history.add_runs("there", &[took(8.0, 0.0, 5)]).expect("added");
        let all = history.repeated(None).expect("read");
        assert_eq!(
            all.iter().map(|of| (of.host.as_str(), of.runs.len())).collect::<Vec<_>>(),
            [("here", 4), ("here", 1), ("there", 1)]
        );
        let first = &all[0];
        assert_eq!(
            first.runs.iter().map(|run| run.is_chosen).collect::<Vec<_>>(),
            [Some(false), Some(false), Some(true), None]
        );
        assert_eq!((first.usual_seconds(), first.chosen_seconds()), (Some(5.0), Some(3.0)));
        let percents: Vec<f64> = first.saved().iter().map(|saved| (saved * 100.0).round()).collect();
        assert_eq!(percents, [20.0, -20.0, 40.0, -100.0]);
        assert!(all[1].saved().is_empty());
        assert!(history.repeated(Some("b")).expect("read").is_empty());
    }
}
