//! What is known of a program's demand for memory bandwidth, and what was decided.

use rusqlite::params;

use crate::file::{History, Problem, host};

/// The end of a host's name under which demands of tier B are kept. They are slow-downs of reads, not bandwidths.
pub const TIER_B: &str = " (tier B)";
/// GB/s of one request, a line of 64 bytes, in each microsecond.
const GB_PER_S: f64 = 64.0 / 1000.0;

/// The demand of a program on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The host, and the tier if it is B.
    pub host: String,
    /// The number of phases.
    pub phases: u64,
    /// The share of the quanta whose phase is known, from 0 to 1.
    pub coverage: f64,
    /// The least and the largest demand of a known phase: requests per microsecond, or a slow-down in tier B.
    pub demand: Option<[f64; 2]>,
}

impl Demand {
    /// A sentence: `92 % covered, 11 phases, demand 0.4 to 11.0 GB/s`.
    pub fn sentence(&self) -> String {
        let range = |[least, most]: [f64; 2], of: f64, digits: usize| match least == most {
            true => format!("{:.digits$}", most * of),
            false => format!("{:.digits$} to {:.digits$}", least * of, most * of),
        };
        let demand = match self.demand {
            None => "demand not known yet".to_owned(),
            Some(demand) if self.host.ends_with(TIER_B) => {
                format!("slows work on memory down by {} %", range(demand, 100.0, 0))
            }
            Some(demand) => format!("demand {} GB/s", range(demand, GB_PER_S, 1)),
        };
        let phases = if self.phases == 1 { "1 phase".to_owned() } else { format!("{} phases", self.phases) };
        format!("{:.0} % covered, {phases}, {demand}", self.coverage * 100.0)
    }
}

impl History {
    /// Returns the demand of a program, by its build, on each host that has seen it.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn demands(&self, build: &str) -> Result<Vec<Demand>, Problem> {
        let mut select = self.connection.prepare(
            "select hosts.name, count(*), total(quanta * rate_valid) / max(total(quanta), 1), \
             min(bandwidth) filter (where bandwidth_valid), max(bandwidth) filter (where bandwidth_valid) \
             from phases join programs on program = programs.id join hosts on host = hosts.id \
             where build = ?1 group by hosts.id order by hosts.name",
        )?;
        let rows = select.query_map([build], |row| {
            let (least, most): (Option<f64>, Option<f64>) = (row.get(3)?, row.get(4)?);
            Ok(Demand {
                host: row.get(0)?,
                phases: row.get::<_, i64>(1)? as u64,
                coverage: row.get(2)?,
                demand: least.zip(most).map(|(least, most)| [least, most]),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the mean processor time of a program's runs, in microseconds, on each host where both are known: in the system's order, and when the
    /// scheduler chose the programs. Each input counts once.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn times(&self, build: &str) -> Result<Vec<(String, [f64; 2])>, Problem> {
        let mut select = self.connection.prepare(
            "select hosts.name, sum(usual_us), sum(chosen_us) \
             from inputs join programs on program = programs.id join hosts on host = hosts.id \
             where build = ?1 and usual_runs > 0 and chosen_runs > 0 group by hosts.id order by hosts.name",
        )?;
        let rows = select.query_map([build], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?])))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds what a queue decided: the number of quanta for each reason.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn add_decisions(&mut self, on: &str, at_ms: u64, tier: &str, quanta: &[(&str, u64)]) -> Result<(), Problem> {
        let transaction = self.write()?;
        let host = host(&transaction, on)?;
        for (reason, quanta) in quanta {
            let insert = "insert into decisions values (?1, ?2, ?3, ?4, ?5)";
            transaction.execute(insert, params![host, at_ms as i64, tier, reason, *quanta as i64])?;
        }
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_schedule::{BlockVector, Buckets, Phases, Program, Similarity, Store};
    use std::collections::BTreeMap;

    /// A program with three quanta in a phase of 10 requests per microsecond, and one in a phase that is not known.
    fn store() -> Store {
        let mut phases = Phases::default();
        for (address, valid) in [(0, true), (0, true), (0, true), (6400, false)] {
            let vector = BlockVector::of(&[address], &Buckets::Bytes(64));
            let place = phases.recognise(&vector, &Similarity::default());
            phases.update(place, 1000.0, 10.0, valid);
        }
        let program = Program { phases, ..Program::default() };
        Store { programs: BTreeMap::from([("a".into(), program)]), ..Store::default() }
    }

    #[test]
    fn a_program_is_explained_by_coverage_phases_and_demand() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        history.save("here", &store()).expect("saved");
        history.save(&format!("here{TIER_B}"), &store()).expect("saved");
        let said: Vec<String> = history.demands("a").expect("read").iter().map(Demand::sentence).collect();
        assert_eq!(
            said,
            ["75 % covered, 2 phases, demand 0.6 GB/s", "75 % covered, 2 phases, slows work on memory down by 1000 %"]
        );
        assert_eq!(history.demands("b").expect("read"), []);
    }

    #[test]
    fn a_range_of_demands_and_none_are_said() {
        let demand = Demand { host: "here".into(), phases: 11, coverage: 0.92, demand: Some([6.25, 172.0]) };
        assert_eq!(demand.sentence(), "92 % covered, 11 phases, demand 0.4 to 11.0 GB/s");
        let unknown = Demand { phases: 1, coverage: 0.0, demand: None, ..demand };
        assert_eq!(unknown.sentence(), "0 % covered, 1 phase, demand not known yet");
    }
}
