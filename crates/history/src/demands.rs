//! The demand of programs for memory bandwidth, and the decisions made by it.

use gristmill_schedule::Pressure;
use rusqlite::{Row, params};

use crate::file::{History, Problem, host, rows};
use crate::limits::{DAY_MS, limits};
use crate::measured::counted;

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
    /// The least and the largest demand of a known phase, in requests per microsecond. In tier B, they are slow-downs.
    pub demand: Option<[f64; 2]>,
    /// In tier B, the slow-down of the program as a whole, and how sure it is.
    pub pressure: Option<Pressure>,
}

/// The readings from which a slow-down is shown. With fewer, under load, work on memory was said to be slowed down by 0
/// %, and by a program that only computes by 2 %.
pub const READINGS_MIN: u64 = 30;

/// Returns a slow-down in words, with the interval in which it lies in 19 of 20 cases.
fn slow_down(pressure: Option<Pressure>) -> String {
    let pressure = pressure.unwrap_or_default();
    let readings = counted(pressure.readings, "reading");
    if pressure.readings < READINGS_MIN {
        return format!(
            "too few readings to tell how much it slows work on memory down ({readings}, of {READINGS_MIN} at least)"
        );
    }
    let percent = |demand: f64| (demand.max(0.0) * 100.0).round();
    let [least, most] = pressure.interval().map(percent);
    match least > 0.0 {
        true => {
            format!("slows work on memory down by {} % ({least} to {most} %, {readings})", percent(pressure.demand))
        }
        false => format!("slows work on memory down by at most {most} %, perhaps not at all ({readings})"),
    }
}

impl Demand {
    /// A sentence: `92 % covered, 11 phases, demand 0.4 to 11.0 GB/s`, or in tier B
    /// `92 % covered, 11 phases, slows work on memory down by 33 % (25 to 41 %, 240 readings)`.
    pub fn sentence(&self) -> String {
        let range = |[least, most]: [f64; 2], of: f64, digits: usize| match least == most {
            true => format!("{:.digits$}", most * of),
            false => format!("{:.digits$} to {:.digits$}", least * of, most * of),
        };
        let demand = match self.demand {
            _ if self.host.ends_with(TIER_B) => slow_down(self.pressure),
            None => "demand not known yet".to_owned(),
            Some(demand) => format!("demand {} GB/s", range(demand, GB_PER_S, 1)),
        };
        format!("{:.0} % covered, {}, {demand}", self.coverage * 100.0, counted(self.phases, "phase"))
    }
}

/// The processor time of a program in either order: microseconds, and the number of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BothTimes {
    /// In the system's order.
    pub usual: [f64; 2],
    /// When the scheduler chose the programs.
    pub chosen: [f64; 2],
}

impl History {
    /// Returns the demand of a program, by its build, on each host that has seen it.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn demands(&self, build: &str) -> Result<Vec<Demand>, Problem> {
        let select = "select hosts.name, count(*), total(quanta * rate_valid) / max(total(quanta), 1), \
             min(bandwidth) filter (where bandwidth_valid), max(bandwidth) filter (where bandwidth_valid), \
             demand, error, readings \
             from phases join programs on phases.program = programs.id join hosts on phases.host = hosts.id \
             left join pressures on pressures.host = hosts.id and pressures.program = programs.id \
             where build = ?1 group by hosts.id order by hosts.name";
        let demand = |row: &Row<'_>| {
            let (least, most): (Option<f64>, Option<f64>) = (row.get(3)?, row.get(4)?);
            Ok(Demand {
                host: row.get(0)?,
                phases: row.get::<_, i64>(1)? as u64,
                coverage: row.get(2)?,
                demand: least.zip(most).map(|(least, most)| [least, most]),
                pressure: match row.get::<_, Option<f64>>(5)? {
                    Some(demand) => {
                        Some(Pressure { demand, error: row.get(6)?, readings: row.get::<_, i64>(7)? as u64 })
                    }
                    None => None,
                },
            })
        };
        Ok(rows(&self.connection, select, [build], demand)?)
    }

    /// Returns the mean processor time of a program's runs on each host where both are known. Each input counts once.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn times(&self, build: &str) -> Result<Vec<(String, BothTimes)>, Problem> {
        let select = "select hosts.name, sum(usual_us), total(usual_runs), sum(chosen_us), total(chosen_runs) \
             from inputs join programs on program = programs.id join hosts on host = hosts.id \
             where build = ?1 and usual_runs > 0 and chosen_runs > 0 group by hosts.id order by hosts.name";
        let both = |row: &Row<'_>| {
            let times = BothTimes { usual: [row.get(1)?, row.get(2)?], chosen: [row.get(3)?, row.get(4)?] };
            Ok((row.get(0)?, times))
        };
        Ok(rows(&self.connection, select, [build], both)?)
    }

    /// Adds what a queue decided: the number of quanta for each reason.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn add_decisions(&mut self, on: &str, at_ms: u64, tier: &str, quanta: &[(&str, u64)]) -> Result<(), Problem> {
        let transaction = self.write()?;
        let (host, limits) = (host(&transaction, on)?, limits(&transaction)?);
        // The oldest queues stand first. Some are enough, because each queue adds fewer.
        let before_ms = at_ms.saturating_sub(limits.days.saturating_mul(DAY_MS)) as i64;
        let old = "delete from decisions where at_ms < ?1 and rowid in (select rowid from decisions order by rowid limit 100)";
        transaction.execute(old, [before_ms])?;
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
    use gristmill_schedule::{BlockVector, KnownProgram, Phases, Similarity, Store};
    use std::collections::BTreeMap;

    /// A program with three quanta in a phase of 10 requests per microsecond, and one in a phase that is not known.
    fn store() -> Store {
        let mut phases = Phases::default();
        for (address, valid) in [(0, true), (0, true), (0, true), (6400, false)] {
            let vector = BlockVector::of(&[address]);
            let place = phases.recognise(&vector, &Similarity::default());
            phases.update(place, 1000.0, 10.0, valid);
        }
        let pressure = Some(Pressure { demand: 0.5, error: 0.03, readings: 40 });
        let program = KnownProgram { phases, pressure, ..KnownProgram::default() };
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
            [
                "75 % covered, 2 phases, demand 0.6 GB/s",
                "75 % covered, 2 phases, slows work on memory down by 50 % (44 to 56 %, 40 readings)"
            ]
        );
        assert_eq!(history.demands("b").expect("read"), []);
    }

    #[test]
    fn a_range_of_demands_and_none_are_said() {
        let demand =
            Demand { host: "here".into(), phases: 11, coverage: 0.92, demand: Some([6.25, 172.0]), pressure: None };
        assert_eq!(demand.sentence(), "92 % covered, 11 phases, demand 0.4 to 11.0 GB/s");
        let unknown = Demand { phases: 1, coverage: 0.0, demand: None, ..demand };
        assert_eq!(unknown.sentence(), "0 % covered, 1 phase, demand not known yet");
    }

    /// Work on memory was said to be slowed down by 0 % by a program that does nothing else, and by 2 % by one that
    /// only computes.
    #[test]
    fn few_readings_and_wide_intervals_are_said_to_be_uncertain() {
        let said = |demand: f64, error: f64, readings: u64| slow_down(Some(Pressure { demand, error, readings }));
        assert_eq!(
            said(0.0, 0.01, 29),
            "too few readings to tell how much it slows work on memory down (29 readings, of 30 at least)"
        );
        assert!(slow_down(None).contains("(0 readings, of 30 at least)"));
        assert_eq!(said(0.02, 0.04, 30), "slows work on memory down by at most 10 %, perhaps not at all (30 readings)");
        assert_eq!(said(0.33, 0.04, 240), "slows work on memory down by 33 % (25 to 41 %, 240 readings)");
    }
}
