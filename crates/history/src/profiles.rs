//! What the scheduler has learned, as [`gristmill_schedule::Store`].

use std::collections::BTreeSet;

use gristmill_schedule::{BlockVector, Estimate, Input, Phase, Program, Recent, Store, Times};
use rusqlite::{Row, Transaction, params};

use crate::file::{History, Problem, host, program};

/// The bytes of one element of a vector: a bucket and its share.
const ELEMENT_BYTES: usize = 12;

impl History {
    /// Reads all that was learned on a host.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn load(&self, on: &str) -> Result<Store, Problem> {
        let mut store = Store::default();
        let mut phases = self.connection.prepare(
            "select build, quanta, rate, rate_samples, rate_valid, bandwidth, bandwidth_samples, bandwidth_valid, centroid \
             from phases join programs on program = programs.id \
             where host = (select id from hosts where name = ?1) order by build, place",
        )?;
        let rows = phases.query_map([on], |row| Ok((row.get::<_, String>(0)?, phase(row)?)))?;
        let rows: Vec<(String, Phase)> = rows.collect::<Result<_, _>>()?;
        for same in rows.chunk_by(|a, b| a.0 == b.0) {
            let phases = same.iter().map(|(_, phase)| phase.clone()).collect();
            store.programs.entry(same[0].0.clone()).or_default().phases = phases;
        }
        let mut inputs = self.connection.prepare(
            "select build, input, runs, requests, usual_us, usual_runs, chosen_us, chosen_runs from inputs join programs on program = programs.id \
             where host = (select id from hosts where name = ?1)",
        )?;
        let rows = inputs.query_map([on], |row| {
            let recent = |at: usize| {
                Ok::<_, rusqlite::Error>(Recent { mean: row.get(at)?, count: row.get::<_, i64>(at + 1)? as u64 })
            };
            let times = Times { usual: recent(4)?, chosen: recent(6)? };
            let (runs, requests) = (row.get::<_, i64>(2)? as u64, row.get(3)?);
            let input = Input { runs, requests, times, ..Input::default() };
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, input))
        })?;
        for row in rows {
            let (build, name, input) = row?;
            store.programs.entry(build).or_default().inputs.insert(name, input);
        }
        let mut instructions = self.connection.prepare(
            "select build, input, phase, count from instructions join programs on program = programs.id \
             where host = (select id from hosts where name = ?1)",
        )?;
        let rows = instructions.query_map([on], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)? as usize, row.get(3)?))
        })?;
        for row in rows {
            let (build, input, phase, count) = row?;
            let inputs = &mut store.programs.entry(build).or_default().inputs;
            inputs.entry(input).or_default().instructions.insert(phase, count);
        }
        let mut transitions = self.connection.prepare(
            "select build, phase, next, count from transitions join programs on program = programs.id \
             where host = (select id from hosts where name = ?1)",
        )?;
        let rows = transitions.query_map([on], |row| {
            let [phase, next, count] = [row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?];
            Ok((row.get::<_, String>(0)?, phase as usize, next as usize, count as u32))
        })?;
        for row in rows {
            let (build, phase, next, count) = row?;
            store.programs.entry(build).or_default().followed.add(phase, next, count);
        }
        let mut pairs = self
            .connection
            .prepare("select one, other from dropped_pairs where host = (select id from hosts where name = ?1)")?;
        let rows = pairs.query_map([on], |row| Ok((row.get(0)?, row.get(1)?)))?;
        store.dropped = rows.collect::<Result<BTreeSet<_>, _>>()?;
        Ok(store)
    }

    /// Writes what was learned on a host, all or nothing.
    ///
    /// Of two schedulers that learned about the same program, the one that has seen more of it in all is kept.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn save(&mut self, on: &str, store: &Store) -> Result<(), Problem> {
        let transaction = self.write()?;
        let host = host(&transaction, on)?;
        for (build, learned) in &store.programs {
            let number = program(&transaction, build, build)?;
            let seen: i64 = learned.phases.iter().map(|phase| phase.quanta as i64).sum();
            let kept: i64 = transaction.query_row(
                "select coalesce(sum(quanta), 0) from phases where host = ?1 and program = ?2",
                [host, number],
                |row| row.get(0),
            )?;
            if seen > kept {
                replace(&transaction, host, number, learned)?;
            }
        }
        for (one, other) in &store.dropped {
            let insert = "insert into dropped_pairs values (?1, ?2, ?3) on conflict do nothing";
            transaction.execute(insert, params![host, one, other])?;
        }
        Ok(transaction.commit()?)
    }
}

fn replace(transaction: &Transaction<'_>, host: i64, number: i64, learned: &Program) -> Result<(), Problem> {
    for table in ["phases", "inputs", "instructions", "transitions"] {
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
            "insert into inputs values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                host,
                number,
                name,
                input.runs as i64,
                input.requests,
                input.times.usual.mean,
                input.times.usual.count as i64,
                input.times.chosen.mean,
                input.times.chosen.count as i64,
            ],
        )?;
        for (phase, count) in &input.instructions {
            transaction.execute(
                "insert into instructions values (?1, ?2, ?3, ?4, ?5)",
                params![host, number, name, *phase as i64, count],
            )?;
        }
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
    let centroid: Vec<u8> = row.get(8)?;
    Ok(Phase {
        centroid: vector(&centroid),
        quanta: row.get::<_, i64>(1)? as u64,
        rate: estimate(2)?,
        bandwidth: estimate(5)?,
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
mod tests {
    use super::*;
    use gristmill_schedule::{Buckets, Followed, Phases, Similarity};
    use std::collections::BTreeMap;

    /// A store with one program of two phases, which were seen so often.
    fn store(quanta: usize) -> Store {
        let mut phases = Phases::default();
        for turn in 0..quanta {
            let vector = BlockVector::of(&[turn as u64 % 2 * 640, 64], &Buckets::Bytes(64));
            let place = phases.recognise(&vector, &Similarity::default());
            phases.update(place, 1000.0 / (turn + 1) as f64, 0.1, turn % 3 == 0);
        }
        let mut input = Input::default();
        input.take_in(quanta as f64, &BTreeMap::from([(0, 5.0), (1, 7.5)]));
        input.times.usual.take_in(3e6);
        input.times.chosen.take_in(2.5e6);
        let mut followed = Followed::default();
        followed.add(0, 1, 3);
        followed.add(1, 0, 2);
        let program = Program { phases, inputs: BTreeMap::from([("i".into(), input)]), followed };
        Store { programs: BTreeMap::from([("a".into(), program)]), dropped: BTreeSet::from([("a".into(), "b".into())]) }
    }

    #[test]
    fn what_was_saved_is_loaded_bit_by_bit_and_by_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        History::open(&path).and_then(|mut history| history.save("here", &store(7))).expect("saved");
        let history = History::open(&path).expect("it opens");
        assert_eq!(history.load("here").expect("read"), store(7));
        assert_eq!(history.load("there").expect("read"), Store::default());
    }

    #[test]
    fn of_two_schedulers_the_one_that_has_seen_more_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        for (seen, kept) in [(4, 4), (9, 9), (6, 9), (9, 9), (10, 10)] {
            history.save("here", &store(seen)).expect("saved");
            assert_eq!(history.load("here").expect("read"), store(kept), "{seen}");
        }
    }
}
