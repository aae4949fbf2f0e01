//! The ceilings of a host's memory: the bandwidth that was measured, and the time of an undisturbed reading.

use rusqlite::{OptionalExtension, params};

use crate::file::{History, Problem, host};

/// The name of the time of an undisturbed reading of memory, in microseconds.
pub const UNDISTURBED_US: &str = "undisturbed reading, us";

/// A value of a host, and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The value, in the unit that its name says.
    pub value: f64,
}

impl History {
    /// Returns the last value of this name on a host.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn ceiling(&self, on: &str, name: &str) -> Result<Option<Ceiling>, Problem> {
        let select = "select at_ms, value from ceilings join hosts on host = hosts.id where hosts.name = ?1 and ceilings.name = ?2";
        let row = self.connection.query_row(select, [on, name], |row| {
            Ok(Ceiling { at_ms: row.get::<_, i64>(0)? as u64, value: row.get(1)? })
        });
        Ok(row.optional()?)
    }

    /// Keeps a value of a host, and forgets the one before.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn save_ceiling(&mut self, on: &str, name: &str, at_ms: u64, value: f64) -> Result<(), Problem> {
        let transaction = self.write()?;
        let host = host(&transaction, on)?;
        let insert = "insert or replace into ceilings values (?1, ?2, ?3, ?4)";
        transaction.execute(insert, params![host, name, at_ms as i64, value])?;
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ceiling_of_a_host_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        for (at_ms, value) in [(1, 20.0), (2, 15.5)] {
            history.save_ceiling("here", "probe_us", at_ms, value).expect("saved");
        }
        assert_eq!(history.ceiling("here", "probe_us").expect("read"), Some(Ceiling { at_ms: 2, value: 15.5 }));
        assert_eq!(history.ceiling("there", "probe_us").expect("read"), None);
    }
}
