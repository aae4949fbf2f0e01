//! The scheduler's knowledge, as [`gristmill_schedule::Store`].

use std::collections::BTreeMap;

use gristmill_schedule::{
    BlockVector, Estimate, Followed, KnownInput, KnownProgram, Phase, Phases, Pressure, Recent, Store, Times,
};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::file::{History, Problem, Seen, host, program, rows, write};

/// The bytes of one element of a vector: a bucket and its share.
const ELEMENT_BYTES: usize = 12;

/// A program on a host: both numbers are found by their indexes.
const OF_PROGRAM: &str =
    "host = (select id from hosts where name = ?1) and program = (select id from programs where build = ?2)";

impl History {
    /// Reads what was learned of a program on a host, without its inputs, and its dropped pairs.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn load_program(&mut self, on: &str, build: &str) -> Result<Store, Problem> {
        let select = format!(
            "select quanta, rate, rate_samples, rate_valid, bandwidth, bandwidth_samples, bandwidth_valid, centroid \
             from phases where {OF_PROGRAM} order by place"
        );
        let phases: Vec<Phase> = rows(&self.connection, &select, [on, build], phase)?;
        let quanta = phases.iter().map(|phase| phase.quanta as i64).sum();
        self.loaded.insert((on.into(), build.into()), Seen { quanta, phases: phases.len() as i64 });
        let mut followed = Followed::default();
        let select = format!("select phase, next, count from transitions where {OF_PROGRAM}");
        let transition = |row: &Row<'_>| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]);
        for [phase, next, count] in rows::<_, Vec<_>>(&self.connection, &select, [on, build], transition)? {
            followed.add(phase as usize, next as usize, count as u32);
        }
        let pressure = self
            .connection
            .prepare(&format!("select demand, error, readings from pressures where {OF_PROGRAM}"))?
            .query_row([on, build], |row| {
                Ok(Pressure { demand: row.get(0)?, error: row.get(1)?, readings: row.get::<_, i64>(2)? as u64 })
            })
            .optional()?;
        let select = "select one, other from dropped_pairs where host = (select id from hosts where name = ?1) and (one = ?2 or other = ?2)";
        let dropped = rows(&self.connection, select, [on, build], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut store = Store { dropped, ..Store::default() };
        if !phases.is_empty() {
            let program =
                KnownProgram { phases: Phases::from_iter(phases), followed, pressure, inputs: BTreeMap::new() };
            store.programs.insert(build.into(), program);
        }
        Ok(store)
    }

    /// Reads what was learned of a program with an input on a host; `None` if that is nothing.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn load_input(&self, on: &str, build: &str, input: &str) -> Result<Option<KnownInput>, Problem> {
        let columns =
            "runs, requests, tried, usual_us, usual_variance, usual_runs, chosen_us, chosen_variance, chosen_runs";
        let found = self
            .connection
            .prepare(&format!("select {columns} from inputs where {OF_PROGRAM} and input = ?3"))?
            .query_row([on, build, input], |row| {
                let recent = |at: usize| {
                    let (mean, variance) = (row.get(at)?, row.get(at + 1)?);
                    Ok::<_, rusqlite::Error>(Recent { mean, variance, count: row.get::<_, i64>(at + 2)? as u64 })
                };
                let times = Times { usual: recent(3)?, chosen: recent(6)?, tried: row.get::<_, i64>(2)? as u64 };
                let (runs, requests) = (row.get::<_, i64>(0)? as u64, row.get(1)?);
                Ok(KnownInput { runs, requests, times, ..KnownInput::default() })
            })
            .optional()?;
        let Some(mut found) = found else { return Ok(None) };
        let select = format!("select phase, count from instructions where {OF_PROGRAM} and input = ?3");
        found.instructions = rows(&self.connection, &select, [on, build, input], |row| {
            Ok((row.get::<_, i64>(0)? as usize, row.get(1)?))
        })?;
        Ok(Some(found))
    }

    /// Writes what was learned on a host, all or nothing.
    ///
    /// Of two schedulers that learned about the same program, the one that has seen more of it in all is kept. Inputs
    /// that the store does not have stay, unless they name phases that another scheduler found meanwhile. A program
    /// that another process has forgotten since the history was opened is left out.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn save(&mut self, on: &str, store: &Store) -> Result<(), Problem> {
        let transaction = write(&mut self.connection)?;
        self.forgotten.look(&transaction)?;
        let host = host(&transaction, on)?;
        let is_known = |build: &str| !self.forgotten.has(build);
        let mut saved = Vec::new();
        for (build, learned) in store.programs.iter().filter(|(build, _)| is_known(build)) {
            let number = program(&transaction, build, build)?;
            let now = Seen {
                quanta: learned.phases.iter().map(|phase| phase.quanta as i64).sum(),
                phases: learned.phases.len() as i64,
            };
            let kept: i64 = transaction.query_row(
                "select coalesce(sum(quanta), 0) from phases where host = ?1 and program = ?2",
                [host, number],
                |row| row.get(0),
            )?;
            if now.quanta > kept {
                let key = (on.to_owned(), build.clone());
                let before = self.loaded.get(&key).copied().unwrap_or_default();
                if kept != before.quanta {
                    remove_inputs_of_others(&transaction, [host, number, before.phases])?;
                }
                replace(&transaction, host, number, learned)?;
                saved.push((key, now));
            }
        }
        for (one, other) in store.dropped.iter().filter(|(one, other)| is_known(one) && is_known(other)) {
            let insert = "insert into dropped_pairs values (?1, ?2, ?3) on conflict do nothing";
            transaction.execute(insert, params![host, one, other])?;
        }
        transaction.commit()?;
        self.loaded.extend(saved);
        Ok(())
    }
}

/// Removes the inputs that name phases which are not among the first ones, those that both schedulers knew.
fn remove_inputs_of_others(transaction: &Transaction<'_>, [host, number, phases]: [i64; 3]) -> Result<(), Problem> {
    let others = "select input from instructions where host = ?1 and program = ?2 and phase >= ?3";
    let inputs = format!("delete from inputs where host = ?1 and program = ?2 and input in ({others})");
    transaction.execute(&inputs, [host, number, phases])?;
    // Their other phases would count as instructions of nothing.
    let rest = "delete from instructions where host = ?1 and program = ?2 \
                and input not in (select input from inputs where host = ?1 and program = ?2)";
    transaction.execute(rest, [host, number])?;
    Ok(())
}

fn replace(transaction: &Transaction<'_>, host: i64, number: i64, learned: &KnownProgram) -> Result<(), Problem> {
    for table in ["phases", "transitions", "pressures"] {
        transaction.execute(&format!("delete from {table} where host = ?1 and program = ?2"), [host, number])?;
    }
    for (place, phase) in learned.phases.iter().enumerate() {
        let (rate, bandwidth) = (&phase.rate, &phase.bandwidth);
        transaction.execute(
            "insert into phases values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                host,
                number,
                place as i64,
                phase.quanta as i64,
                rate.mean,
                rate.samples as i64,
                rate.valid,
                bandwidth.mean,
                bandwidth.samples as i64,
                bandwidth.valid,
                bytes(&phase.centroid),
            ],
        )?;
    }
    for (name, input) in &learned.inputs {
        transaction.execute(
            "insert or replace into inputs (host, program, input, runs, requests, tried, usual_us, usual_variance, usual_runs, \
             chosen_us, chosen_variance, chosen_runs) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                host,
                number,
                name,
                input.runs as i64,
                input.requests,
                input.times.tried as i64,
                input.times.usual.mean,
                input.times.usual.variance,
                input.times.usual.count as i64,
                input.times.chosen.mean,
                input.times.chosen.variance,
                input.times.chosen.count as i64,
            ],
        )?;
        let delete = "delete from instructions where host = ?1 and program = ?2 and input = ?3";
        transaction.execute(delete, params![host, number, name])?;
        for (phase, count) in &input.instructions {
            transaction.execute(
                "insert into instructions values (?1, ?2, ?3, ?4, ?5)",
                params![host, number, name, *phase as i64, count],
            )?;
        }
    }
    if let Some(Pressure { demand, error, readings }) = learned.pressure {
        let insert = "insert into pressures values (?1, ?2, ?3, ?4, ?5)";
        transaction.execute(insert, params![host, number, demand, error, readings as i64])?;
    }
    for (phase, next, count) in learned.followed.iter() {
        transaction.execute(
            "insert into transitions values (?1, ?2, ?3, ?4, ?5)",
            params![host, number, phase as i64, next as i64, count],
        )?;
    }
    Ok(())
}

fn phase(row: &Row<'_>) -> rusqlite::Result<Phase> {
    let estimate = |at: usize| {
        Ok::<_, rusqlite::Error>(Estimate {
            mean: row.get(at)?,
            samples: row.get::<_, i64>(at + 1)? as u64,
            valid: row.get(at + 2)?,
        })
    };
    let centroid: Vec<u8> = row.get(7)?;
    Ok(Phase {
        centroid: vector(&centroid),
        quanta: row.get::<_, i64>(0)? as u64,
        rate: estimate(1)?,
        bandwidth: estimate(4)?,
    })
}

/// A bucket in 8 bytes and its share in 4, little-endian, for each element.
fn bytes(vector: &BlockVector) -> Vec<u8> {
    let element = |(bucket, share): &(u64, f32)| [&bucket.to_le_bytes()[..], &share.to_le_bytes()].concat();
    vector.shares().iter().flat_map(element).collect()
}

fn vector(bytes: &[u8]) -> BlockVector {
    let element = |bytes: &[u8]| {
        let (bucket, share) = bytes.split_first_chunk::<8>()?;
        Some((u64::from_le_bytes(*bucket), f32::from_le_bytes(share.try_into().ok()?)))
    };
    BlockVector::from_shares(bytes.chunks_exact(ELEMENT_BYTES).filter_map(element).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use gristmill_schedule::Similarity;

    /// A program of two phases, which were seen so often, with an input "i".
    pub(crate) fn program(quanta: usize) -> KnownProgram {
        let mut phases = Phases::default();
        for turn in 0..quanta {
            let vector = BlockVector::of(&[turn as u64 % 2 * 640, 64]);
            let place = phases.recognise(&vector, &Similarity::default());
            phases.update(place, 1000.0 / (turn + 1) as f64, 0.1, turn % 3 == 0);
        }
        let mut input = KnownInput::default();
        input.take_in(quanta as f64, &BTreeMap::from([(0, 5.0), (1, 7.5)]));
        input.times.tried = 3;
        input.times.usual.take_in(3e6);
        input.times.usual.take_in(4e6);
        input.times.chosen.take_in(2.5e6);
        let mut followed = Followed::default();
        followed.add(0, 1, 3);
        followed.add(1, 0, 2);
        let pressure = Some(Pressure { demand: 0.5, error: 0.25, readings: 40 });
        KnownProgram { phases, inputs: BTreeMap::from([("i".into(), input)]), followed, pressure }
    }

    fn store(quanta: usize) -> Store {
        Store {
            programs: BTreeMap::from([("a".into(), program(quanta))]),
            dropped: BTreeSet::from([("a".into(), "b".into())]),
        }
    }

    /// Returns all that is known of program "a" with input "i".
    fn loaded(history: &mut History, on: &str) -> Store {
        let mut store = history.load_program(on, "a").expect("read");
        if let Some(input) = history.load_input(on, "a", "i").expect("read") {
            store.programs.entry("a".into()).or_default().inputs.insert("i".into(), input);
        }
        store
    }

    #[test]
    fn what_was_saved_is_loaded_bit_by_bit_and_by_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        History::open(&path).and_then(|mut history| history.save("here", &store(7))).expect("saved");
        let mut history = History::open(&path).expect("it opens");
        assert_eq!(loaded(&mut history, "here"), store(7));
        assert_eq!(loaded(&mut history, "there"), Store::default());
        assert_eq!(history.load_program("here", "b").expect("read").dropped, store(7).dropped);
    }

    #[test]
    fn of_two_schedulers_the_one_that_has_seen_more_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        for (seen, kept) in [(4, 4), (9, 9), (6, 9), (9, 9), (10, 10)] {
            history.save("here", &store(seen)).expect("saved");
            assert_eq!(loaded(&mut history, "here"), store(kept), "{seen}");
        }
    }

    /// A program with `quanta` quanta in its first phase, then one in each of these others, and an input of the last
    /// phase.
    fn with_input(quanta: usize, others: &[u64], name: &str) -> Store {
        let mut program = KnownProgram::default();
        let codes = std::iter::repeat_n(0, quanta).chain(others.iter().copied());
        let places: Vec<usize> = codes
            .map(|code| {
                let vector = BlockVector::of(&[code * 640]);
                program.phases.recognise(&vector, &Similarity::default())
            })
            .collect();
        let last = *places.last().expect("there is one");
        program.inputs.entry(name.into()).or_default().take_in(1.0, &BTreeMap::from([(last, 5.0)]));
        Store { programs: BTreeMap::from([("a".into(), program)]), ..Store::default() }
    }

    #[test]
    fn inputs_that_a_scheduler_has_not_loaded_stay_unless_they_name_phases_of_another_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || History::open(&dir.path().join("h")).expect("it opens");
        let inputs = || {
            let history = open();
            ["first", "second", "third", "fourth"]
                .map(|name| history.load_input("here", "a", name).expect("read").is_some())
        };
        open().save("here", &with_input(1, &[], "first")).expect("saved");
        // One after the other: nothing is lost.
        let (mut one, mut other) = (open(), open());
        one.load_program("here", "a").expect("read");
        other.load_program("here", "a").expect("read");
        one.save("here", &with_input(2, &[], "second")).expect("saved");
        assert_eq!(inputs(), [true, true, false, false]);
        one.save("here", &with_input(3, &[7], "third")).expect("saved");
        assert_eq!(inputs(), [true, true, true, false]);
        // The other one does not know the phase of the third input, and has found one of its own in its place.
        other.save("here", &with_input(9, &[8], "fourth")).expect("saved");
        assert_eq!(inputs(), [true, true, false, true]);
    }
}
