//! Times of a program with several numbers of workers, as `gristmill scale` measures them.
//!
//! A time says something about another run only if both answer the same question (a digest of the options) on the same
//! host with as many processors, and their inputs are similar. A program whose file changed has another build, so
//! nothing is known of it.

use rusqlite::params;

use crate::file::{History, Problem, host, program, rows};
use crate::limits::{DAY_MS, has_measured, limits};

/// The time with one number of workers, and the options that varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The number of processors that the runs were allowed to use.
    pub processors: u64,
    /// The number of files of the input.
    pub files: u64,
    /// Their size.
    pub input_bytes: u64,
    /// The number of workers.
    pub workers: u64,
    /// The number of workers that mapped at the same time, if that was an option of the runs.
    pub map_at_once: Option<u64>,
    /// The bytes that a worker read at a time, if that was an option of the runs.
    pub chunk_bytes: Option<u64>,
    /// The median time.
    pub seconds: f64,
    /// The number of runs.
    pub runs: u64,
    /// When it was measured, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A question that an application is asked, and what its plan may not choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: Question,
    /// The workers that map at the same time.
    pub map_at_once: Option<u64>,
    /// The bytes of a chunk.
    pub chunk_bytes: Option<u64>,
}

/// The program and what it was asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name of the program.
    pub name: String,
    /// The digest of its file.
    pub build: String,
    /// The digest of its options.
    pub options: String,
}

/// The table is made when it is first written to, so a file without it is of the same form. A zero stands for an option
/// that was not given.
const TABLE: &str = "
    create table if not exists measured (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        options text not null,
        processors integer not null,
        files integer not null,
        input_bytes integer not null,
        workers integer not null,
        map_at_once integer not null,
        chunk_bytes integer not null,
        seconds real not null,
        runs integer not null,
        at_ms integer not null,
        primary key (host, program, options, processors, files, input_bytes, workers, map_at_once, chunk_bytes)
    ) without rowid;
";

/// Inputs are similar if neither their sizes nor their numbers of files differ by more than this factor.
const SIMILAR: u64 = 2;

impl History {
    /// Adds times of a program on a host, all or none. They replace those that were measured before in the same way.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn add_measured(&mut self, on: &str, of: &Question, times: &[Measured]) -> Result<(), Problem> {
        let transaction = self.write()?;
        transaction.execute_batch(TABLE)?;
        let (host, program) = (host(&transaction, on)?, program(&transaction, &of.build, &of.name)?);
        let mut insert = transaction
            .prepare("insert or replace into measured values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?;
        for time in times {
            insert.execute(params![
                host,
                program,
                of.options,
                time.processors as i64,
                time.files as i64,
                time.input_bytes as i64,
                time.workers as i64,
                time.map_at_once.unwrap_or(0) as i64,
                time.chunk_bytes.unwrap_or(0) as i64,
                time.seconds,
                time.runs as i64,
                time.at_ms as i64
            ])?;
        }
        drop(insert);
        // Times of inputs that are measured no more.
        let limits = limits(&transaction)?;
        if let Some(last_ms) = times.iter().map(|time| time.at_ms).max() {
            let before_ms = last_ms.saturating_sub(limits.days.saturating_mul(DAY_MS)) as i64;
            transaction.execute("delete from measured where at_ms < ?1", [before_ms])?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns the times of a program on a host with as many processors and a similar input. If several inputs are
    /// similar, they are those of the input that was measured last: times of different inputs do not compare.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn measured(
        &self,
        on: &str,
        of: &Question,
        processors: u64,
        files: u64,
        input_bytes: u64,
    ) -> Result<Vec<Measured>, Problem> {
        if !self.has_measured()? {
            return Ok(Vec::new());
        }
        let select = "select files, input_bytes, workers, map_at_once, chunk_bytes, seconds, measured.runs, at_ms from measured \
             where host = (select id from hosts where name = ?1) and program = (select id from programs where build = ?2) \
             and options = ?3 and processors = ?4 and files between ?5 and ?6 and input_bytes between ?7 and ?8 order by at_ms desc";
        let range =
            |count: u64| [count.div_ceil(SIMILAR) as i64, count.saturating_mul(SIMILAR).min(i64::MAX as u64) as i64];
        let ([files_min, files_max], [bytes_min, bytes_max]) = (range(files), range(input_bytes));
        let by = params![on, of.build, of.options, processors as i64, files_min, files_max, bytes_min, bytes_max];
        let mut times: Vec<Measured> = rows(&self.connection, select, by, |row| {
            let count = |at: usize| row.get::<_, i64>(at).map(|count| count as u64);
            let option = |at: usize| count(at).map(|count| Some(count).filter(|count| *count > 0));
            Ok(Measured {
                processors,
                files: count(0)?,
                input_bytes: count(1)?,
                workers: count(2)?,
                map_at_once: option(3)?,
                chunk_bytes: option(4)?,
                seconds: row.get(5)?,
                runs: count(6)?,
                at_ms: count(7)?,
            })
        })?;
        if let Some((files, bytes)) = times.first().map(|last| (last.files, last.input_bytes)) {
            times.retain(|time| (time.files, time.input_bytes) == (files, bytes));
        }
        Ok(times)
    }
}

impl History {
    /// Returns a sentence for each host, question and input of which times of a program are known:
    /// `here, 8 processors, 1 file of 100.0 MB: 1 worker 2.000 s, 2 workers 1.100 s`.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn measured_sentences(&self, build: &str) -> Result<Vec<String>, Problem> {
        if !self.has_measured()? {
            return Ok(Vec::new());
        }
        let select = "select hosts.name, processors, files, input_bytes, options, workers, map_at_once, chunk_bytes, seconds \
             from measured join hosts on host = hosts.id where program = (select id from programs where build = ?1) \
             order by hosts.name, processors, options, files, input_bytes, chunk_bytes, map_at_once, workers";
        let times: Vec<((String, String), String)> = rows(&self.connection, select, [build], |row| {
            let count = |at: usize| row.get::<_, i64>(at).map(|count| count as u64);
            let host: String = row.get(0)?;
            let head = format!(
                "{host}, {}, {} of {:.1} MB",
                counted(count(1)?, "processor"),
                counted(count(2)?, "file"),
                count(3)? as f64 / 1e6
            );
            let mut time = counted(count(5)?, "worker");
            if let at_once @ 1.. = count(6)? {
                time += &format!(", {at_once} at once");
            }
            if let bytes @ 1.. = count(7)? {
                time += &format!(", chunks of {bytes} B");
            }
            Ok(((head, row.get::<_, String>(4)?), format!("{time} {:.3} s", row.get::<_, f64>(8)?)))
        })?;
        let sentence = |rows: &[((String, String), String)]| {
            let times: Vec<&str> = rows.iter().map(|(_, time)| time.as_str()).collect();
            format!("{}: {}", rows[0].0.0, times.join("; "))
        };
        Ok(times.chunk_by(|a, b| a.0 == b.0).map(sentence).collect())
    }

    fn has_measured(&self) -> Result<bool, Problem> {
        Ok(has_measured(&self.connection)?)
    }
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(build: &str) -> Question {
        Question { name: "word-count".into(), build: build.into(), options: "o".into() }
    }

    fn time(workers: u64, input_bytes: u64, seconds: f64) -> Measured {
        Measured {
            processors: 8,
            files: 1,
            input_bytes,
            workers,
            map_at_once: None,
            chunk_bytes: Some(4096).filter(|_| workers > 1),
            seconds,
            runs: 3,
            at_ms: input_bytes,
        }
    }

    #[test]
    fn only_times_of_this_build_host_question_and_a_similar_input_are_returned() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let of = question("a");
        assert_eq!(history.measured("here", &of, 8, 1, 100).expect("read"), []);
        history.add_measured("here", &of, &[time(1, 100, 3.0), time(2, 100, 2.0)]).expect("added");
        history.add_measured("here", &of, &[time(2, 100, 1.0)]).expect("replaced");
        let known = |on: &str, of: &Question, processors, files, bytes| {
            let times = history.measured(on, of, processors, files, bytes).expect("read");
            let mut of_workers: Vec<_> = times.iter().map(|time| (time.workers, time.seconds)).collect();
            of_workers.sort_by_key(|(workers, _)| *workers);
            of_workers
        };
        assert_eq!(known("here", &of, 8, 1, 100), [(1, 3.0), (2, 1.0)]);
        assert_eq!(known("here", &of, 8, 2, 200).len(), 2);
        for (on, of, processors, files, bytes) in [
            ("there", of.clone(), 8, 1, 100),
            ("here", question("b"), 8, 1, 100),
            ("here", Question { options: "p".into(), ..of.clone() }, 8, 1, 100),
            ("here", of.clone(), 4, 1, 100),
            ("here", of.clone(), 8, 3, 100),
            ("here", of.clone(), 8, 1, 201),
            ("here", of.clone(), 8, 1, 49),
        ] {
            assert_eq!(known(on, &of, processors, files, bytes), [], "{on} {of:?} {processors} {files} {bytes}");
        }
    }

    #[test]
    fn of_two_similar_inputs_the_one_measured_last_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let of = question("a");
        history.add_measured("here", &of, &[time(1, 120, 3.0), time(2, 120, 2.0), time(1, 100, 9.0)]).expect("added");
        let times = history.measured("here", &of, 8, 1, 100).expect("read");
        assert!(times.len() == 2 && times.iter().all(|time| time.input_bytes == 120), "{times:?}");
    }

    #[test]
    fn what_is_known_is_a_sentence_for_each_input() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        assert_eq!(history.measured_sentences("a").expect("read"), Vec::<String>::new());
        let times = [time(1, 1_000_000, 3.0), time(2, 1_000_000, 2.0), time(1, 2_000_000, 9.0)];
        history.add_measured("here", &question("a"), &times).expect("added");
        assert_eq!(
            history.measured_sentences("a").expect("read"),
            [
                "here, 8 processors, 1 file of 1.0 MB: 1 worker 3.000 s; 2 workers, chunks of 4096 B 2.000 s",
                "here, 8 processors, 1 file of 2.0 MB: 1 worker 9.000 s"
            ]
        );
    }

    #[test]
    fn what_is_forgotten_of_a_program_includes_its_times() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let of = question("a");
        history.add_measured("here", &of, &[time(1, 100, 3.0)]).expect("added");
        assert_eq!(history.forget("word-count").expect("removed"), 1);
        assert_eq!(history.measured("here", &of, 8, 1, 100).expect("read"), []);
    }
}
