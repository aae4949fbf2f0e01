//! What a job leaves on disk, so that running it again continues.
//!
//! ```text
//!  DIR/checkpoint.log  a line for each fact, with its checksum: | CRC-32, 8 hex digits | a space | the fact |
//!  DIR/0.pairs         runs of the first reducer, one for each stage, one behind the other (`run.rs` draws a run)
//!  DIR/0.result        what the first reducer has made of them
//!
//!  facts:  job WHAT: VALUE          what the answer depends on, in the order in which it was asked for
//!          plan WORKERS MAP REDUCE SPLIT    how the input was cut, and into how many shares
//!          bad SOURCE OFFSET BYTES CAUSE    a record that was set aside, the cause in hex
//!          stage TASKS BYTES BYTES ...      so many more tasks are done, and have made so many bytes of pairs for each reducer
//!          result REDUCER BYTES             this reducer has made its part of the result
//!          removed NOW                      the files are being removed: nothing above counts any more
//! ```
//!
//! A fact counts when its line is whole, and it is written when what it speaks of is on the disk. What lies behind the last
//! whole line, and behind the bytes that it speaks of, was being written when the job ended: it is written again.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::shared::Place;
use crate::source::Source;

const LOG: &str = "checkpoint.log";
/// How long the processes of a run that was killed may take to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes at the beginning and the end of a file that tell it from another of its size and time.
const BLOCK_BYTES: u64 = 64 << 10;

/// What the log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    job: Vec<String>,
    /// Fused workers or none, map workers, reduce workers, bytes of a split.
    plan: Option<[u64; 4]>,
    pub bad: Vec<(Place, String)>,
    /// It is being removed.
    removed: bool,
    /// Tasks that are done: the first ones.
    pub tasks: usize,
    /// For each stage, the bytes of pairs of each reducer.
    stages: Vec<Vec<u64>>,
    /// For each reducer, the bytes of its result, if it is there.
    results: Vec<Option<u64>>,
}

impl Facts {
    /// Where the runs of `reducer` begin and end, and behind them the next one.
    pub fn runs(&self, reducer: usize) -> (Vec<(u64, u64)>, u64) {
        let mut end = 0;
        let runs = self.stages.iter().map(|bytes| {
            let start = end;
            end += bytes[reducer];
            (start, bytes[reducer])
        });
        (runs.filter(|(_, bytes)| *bytes > 0).collect(), end)
    }

    /// Bytes of the result of `reducer`, if it is there.
    pub fn result(&self, reducer: usize) -> Option<u64> {
        self.results.get(reducer).copied().flatten()
    }

    /// Takes one fact in; `None` if it is none.
    fn take(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let numbers = || rest.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
        match kind {
            "job" => self.job.push(rest.to_owned()),
            "removed" => self.removed = true,
            "plan" => self.plan = Some(numbers()?.try_into().ok()?),
            "stage" => {
                let numbers = numbers()?;
                self.tasks += *numbers.first()? as usize;
                self.stages.push(numbers[1..].to_vec());
            }
            "result" => {
                let [reducer, bytes]: [u64; 2] = numbers()?.try_into().ok()?;
                let reducer = reducer as usize;
                self.results.resize(self.results.len().max(reducer + 1), None);
                self.results[reducer] = Some(bytes);
            }
            "bad" => {
                let mut words = rest.split(' ');
                let mut number = || words.next()?.parse::<u64>().ok();
                let place = Place { source: number()? as usize, offset: number()?, bytes: number()? };
                let cause = words
                    .next()?
                    .as_bytes()
                    .chunks(2)
                    .map(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
                self.bad.push((place, String::from_utf8(cause.collect::<Option<Vec<u8>>>()?).ok()?));
            }
            _ => return None,
        }
        Some(())
    }
}

/// The facts of a log, and the bytes of its whole lines.
fn parse(log: &[u8]) -> (Facts, u64) {
    let (mut facts, mut end) = (Facts::default(), 0);
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let whole = || {
            let line = str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
            let (checksum, fact) = line.split_once(' ')?;
            (u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(fact.as_bytes())).then_some(fact)
        };
        let Some(()) = whole().and_then(|fact| facts.take(fact)) else { break };
        end += line.len() as u64;
    }
    (facts, end)
}

/// The log of a checkpoint, open, and locked against other runs.
pub(crate) struct Checkpoint {
    pub dir: PathBuf,
    log: File,
}

impl Checkpoint {
    /// Opens the checkpoint in `dir`, or begins it there. `job` is what the answer depends on: one that began with something
    /// else is refused.
    pub fn open(dir: &Path, job: &[String]) -> Result<(Checkpoint, Facts)> {
        let failed = |source| Error::Checkpoint { path: dir.to_owned(), source };
        // Workers have this file from their coordinator, so whoever holds the lock knows that none of them is left.
        let began = Instant::now();
        let mut log = loop {
            fs::create_dir_all(dir).map_err(failed)?;
            if let Some(log) = lock(dir, true).map_err(failed)? {
                break log;
            } else if began.elapsed() > PATIENCE {
                return Err(Error::CheckpointInUse { path: dir.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut text = Vec::new();
        log.read_to_end(&mut text).map_err(failed)?;
        let (facts, end) = parse(&text);
        // Even if its first line was cut.
        let (checksum, word) = text.split_at(text.len().min(8));
        let is_ours = checksum.iter().all(u8::is_ascii_hexdigit) && b" job ".starts_with(&word[..word.len().min(5)]);
        if !is_ours {
            return Err(failed(io::Error::other(format!("the file {LOG} in it is something else"))));
        }
        if text.is_empty()
            && let Some(name) = other_files(dir).map_err(failed)?
        {
            // The log is not there yet, or it was when its folder was none of ours.
            drop(fs::remove_file(dir.join(LOG)));
            let name = name.to_string_lossy();
            return Err(failed(io::Error::other(format!(
                "the file {name} in it is no checkpoint's, and would be overwritten"
            ))));
        }
        let (facts, end) = match facts.removed {
            true => {
                remove_files(dir, &facts).map_err(failed)?;
                (Facts::default(), 0)
            }
            false => (facts, end),
        };
        log.set_len(end).map_err(failed)?;
        log.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut checkpoint = Checkpoint { dir: dir.to_owned(), log };
        match facts.plan {
            // Its first lines were never whole: nothing was done yet.
            None => {
                checkpoint.log.set_len(0).map_err(failed)?;
                checkpoint.write(job.iter().map(|line| format!("job {line}")))?;
                checkpoint.sync_names().map_err(failed)?;
                Ok((checkpoint, Facts::default()))
            }
            Some(_) if facts.job == job => Ok((checkpoint, facts)),
            Some(_) => Err(Error::CheckpointOfAnother { path: dir.to_owned(), why: difference(&facts.job, job) }),
        }
    }

    /// The facts as they are on the disk now: for workers.
    pub fn read(dir: &Path) -> io::Result<Facts> {
        Ok(parse(&fs::read(dir.join(LOG))?).0)
    }

    /// Writes down how the job runs.
    pub fn begin(&mut self, plan: [u64; 4]) -> Result<()> {
        let [fused, map, reduce, split] = plan;
        self.write([format!("plan {fused} {map} {reduce} {split}")])
    }

    /// Writes down that records are set aside, each with its cause.
    pub fn note_bad(&mut self, records: &[(Place, String)]) -> Result<()> {
        let facts = records.iter().map(|(Place { source, offset, bytes }, cause)| {
            let cause = cause.bytes().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").expect("a string takes all");
                hex
            });
            format!("bad {source} {offset} {bytes} {cause}")
        });
        self.write(facts)
    }

    /// Writes down that `tasks` more tasks are done, which have made so many bytes of pairs for each reducer.
    pub fn note_stage(&mut self, tasks: usize, bytes: &[u64]) -> Result<()> {
        let bytes: String = bytes.iter().map(|bytes| format!(" {bytes}")).collect();
        self.write([format!("stage {tasks}{bytes}")])
    }

    /// Writes down that `reducer` has made its result.
    pub fn note_result(&mut self, reducer: usize, bytes: u64) -> Result<()> {
        self.write([format!("result {reducer} {bytes}")])
    }

    /// The disk has the names of all files in the folder.
    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    /// Appends facts, and returns when the disk has them; before, it has the names of the files that they speak of.
    fn write(&mut self, facts: impl IntoIterator<Item = String>) -> Result<()> {
        let lines: String = facts.into_iter().map(|fact| line(&fact)).collect();
        let written =
            self.sync_names().and_then(|()| self.log.write_all(lines.as_bytes())).and_then(|()| self.log.sync_data());
        written.map_err(|source| Error::Checkpoint { path: self.dir.clone(), source })
    }
}

/// The log in `dir`, locked; `None` if another run has it, or has just removed it.
fn lock(dir: &Path, create: bool) -> io::Result<Option<File>> {
    let path = dir.join(LOG);
    let log = OpenOptions::new().read(true).append(true).create(create).open(&path)?;
    match flock(&log, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // Who had it may have removed it after it was opened here: then the lock is one of a file that nobody else will find.
    let (ours, named) = (log.metadata()?, fs::metadata(&path));
    let is_named = named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino()));
    Ok(is_named.then_some(log))
}

impl Settings {
    /// The same settings, made to cut the input as a job did that is continued.
    pub fn continue_with(&mut self, facts: &Facts) {
        if let Some([fused, map, reduce, split]) = facts.plan {
            let [map, reduce] = [map, reduce].map(|workers| workers as usize);
            (self.workers, self.map_workers, self.reduce_workers) = match fused {
                1 => (Some(map), None, None),
                _ => (None, Some(map), Some(reduce)),
            };
            self.split_bytes = Some(split);
        }
    }
}

/// What the answer of a job depends on, a line for each: `program` says what the map function depends on beside its input.
pub(crate) fn identity(program: &str, types: &str, settings: &Settings, sources: &[Source]) -> Result<Vec<String>> {
    let one_line = |text: &str| text.replace('\n', " ");
    let Settings { order, limit, records, combine, combine_after, deterministic, skip_bad_records, .. } = settings;
    let separates = match records {
        // A function has no name that lasts; what it does has.
        crate::Records::Separated(separates) => {
            format!("separated by {:?}", (0..=255).filter(|byte| separates(*byte)).collect::<Vec<u8>>())
        }
        other => format!("{other:?}"),
    };
    let built = fs::metadata("/proc/self/exe");
    let built =
        built.map_or(String::new(), |facts| format!("{} bytes, {}.{}", facts.len(), facts.mtime(), facts.mtime_nsec()));
    let mut lines = vec![
        format!("the version: {}", env!("CARGO_PKG_VERSION")),
        format!("the program file: {built}"),
        format!("the program: {}", one_line(program)),
        format!("its types: {types}"),
        format!("records: {separates}"),
        format!("options: {order:?} {limit} {combine:?} {combine_after:?} {deterministic} {skip_bad_records}"),
    ];
    for source in sources {
        let failed = |error| Error::Input { path: source.name.clone(), source: error };
        let file = File::open(&source.path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        let mut ends = Vec::new();
        for start in [0, facts.len().saturating_sub(BLOCK_BYTES)] {
            (&file).seek(SeekFrom::Start(start)).map_err(failed)?;
            (&file).take(BLOCK_BYTES).read_to_end(&mut ends).map_err(failed)?;
        }
        let name = one_line(&source.name.to_string_lossy());
        let (bytes, hash) = (facts.len(), crc32fast::hash(&ends));
        lines.push(format!("{name}: {bytes} bytes, {}.{:09}, {hash:08x}", facts.mtime(), facts.mtime_nsec()));
    }
    Ok(lines)
}

/// The first thing that is not as it was.
fn difference(before: &[String], now: &[String]) -> String {
    let pairs = before.iter().zip(now).find(|(before, now)| before != now);
    match pairs {
        None => format!("it had {} input files, and now there are {}", before.len(), now.len()),
        Some((before, now)) => {
            // A value has no colon with a space behind it, a name may.
            let split = |line: &str| line.rsplit_once(": ").map(|(what, value)| (what.to_owned(), value.to_owned()));
            match (split(before), split(now)) {
                (Some((what, before)), Some((same, now))) if what == same => {
                    format!("{what} was {before:?}, and is {now:?}")
                }
                _ => format!("{before:?} was there, and is {now:?}"),
            }
        }
    }
}

/// A file in `dir` that has the name of a checkpoint's.
fn other_files(dir: &Path) -> io::Result<Option<OsString>> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let number = text.strip_suffix(".pairs").or(text.strip_suffix(".result"));
        if number.is_some_and(|number| number.parse::<usize>().is_ok()) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Removes the files that a checkpoint with this log has, but the log.
fn remove_files(dir: &Path, facts: &Facts) -> io::Result<()> {
    let reducers = facts.plan.map_or(0, |[_, _, reducers, _]| reducers);
    for name in (0..reducers).flat_map(|reducer| [format!("{reducer}.pairs"), format!("{reducer}.result")]) {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the checkpoint in `dir`, and the folder if nothing else is in it: when the result is where it belongs, or when it
/// is not wanted any more. There may be none, and no folder; one that another run uses is left to it. Only files are removed that
/// the log of the checkpoint speaks of.
///
/// # Errors
/// What the system says; and that there is no checkpoint in that folder, but other files. Then nothing is removed.
pub fn remove_checkpoint(dir: &Path) -> io::Result<()> {
    let is_empty = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.next().is_none(),
    };
    let none = || io::Error::other(format!("there is no checkpoint in {}: nothing was removed", dir.display()));
    let mut log = match lock(dir, false) {
        Ok(Some(log)) => log,
        Ok(None) => return Ok(()),
        // Its removal was interrupted before the last step.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_empty => return fs::remove_dir(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(none()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    log.read_to_end(&mut text)?;
    let (facts, end) = parse(&text);
    if facts.job.is_empty() && !text.is_empty() {
        return Err(none());
    }
    // That its files do not count comes first: without that the log would speak of what is not there. Its name goes last: until
    // then nobody else begins here.
    if !facts.job.is_empty() && !facts.removed {
        log.set_len(end)?;
        log.write_all(line("removed now").as_bytes())?;
    }
    remove_files(dir, &facts)?;
    fs::remove_file(dir.join(LOG))?;
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

/// A fact as it stands in the log.
fn line(fact: &str) -> String {
    format!("{:08x} {fact}\n", crc32fast::hash(fact.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Vec<String> {
        vec!["the program: count".into(), "a.txt: 10 bytes".into()]
    }

    fn begun(dir: &Path) -> Checkpoint {
        let (mut checkpoint, _) = Checkpoint::open(dir, &job()).expect("begun");
        checkpoint.begin([1, 2, 2, 1000]).expect("written");
        checkpoint
    }

    #[test]
    fn a_log_cut_anywhere_says_what_its_whole_lines_say() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut checkpoint = begun(dir.path());
        checkpoint.note_stage(3, &[10, 0]).expect("written");
        let place = Place { source: 0, offset: 7, bytes: 2 };
        checkpoint.note_bad(&[(place, "it panicked:\nso".into())]).expect("written");
        checkpoint.note_stage(4, &[5, 6]).expect("written");
        checkpoint.note_result(1, 99).expect("written");
        drop(checkpoint);
        let whole = fs::read(dir.path().join(LOG)).expect("read");
        let mut tasks = Vec::new();
        for cut in 0..=whole.len() {
            fs::write(dir.path().join(LOG), &whole[..cut]).expect("written");
            let (_, facts) = Checkpoint::open(dir.path(), &job()).expect("opened");
            tasks.push(facts.tasks);
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(facts.tasks, [0, 0, 0, 0, 3, 3, 7, 7][lines], "cut at {cut}");
            assert_eq!(facts.bad.len(), usize::from(lines > 4));
            if lines > 5 {
                assert_eq!(facts.runs(0), (vec![(0, 10), (10, 5)], 15));
                assert_eq!(facts.runs(1), (vec![(0, 6)], 6));
            }
            assert_eq!((facts.result(0), facts.result(1)), (None, (lines > 6).then_some(99)));
        }
        assert!(tasks.is_sorted());
    }

    #[test]
    fn another_job_is_refused_with_the_difference() {
        let dir = tempfile::tempdir().expect("a folder");
        drop(begun(dir.path()));
        let changed = ["the program: count".into(), "a.txt: 11 bytes".into()];
        let why = Checkpoint::open(dir.path(), &changed).err().expect("refused").to_string();
        assert!(why.contains("a.txt was \"10 bytes\", and is \"11 bytes\""), "{why}");
    }

    #[test]
    fn a_log_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join(LOG), "dear diary").expect("written");
        let why = Checkpoint::open(dir.path(), &job()).err().expect("refused").to_string();
        assert!(why.contains("is something else"), "{why}");
        assert_eq!(fs::read(dir.path().join(LOG)).expect("read"), b"dear diary");
    }

    #[test]
    fn a_checkpoint_in_use_is_left_alone_and_one_that_was_removed_is_begun_anew() {
        let dir = tempfile::tempdir().expect("a folder");
        let used = begun(dir.path());
        remove_checkpoint(dir.path()).expect("left to the run that uses it");
        assert!(dir.path().join(LOG).exists());
        // This run waits for the lock, on the file that is then removed or on none yet.
        let second = std::thread::spawn({
            let dir = dir.path().to_owned();
            move || Checkpoint::open(&dir, &job()).map(|(checkpoint, facts)| (checkpoint.log.metadata(), facts))
        });
        std::thread::sleep(Duration::from_millis(50));
        fs::remove_file(dir.path().join(LOG)).expect("removed");
        drop(used);
        let (log, facts) = second.join().expect("no panic").expect("opened");
        assert_eq!(facts, Facts::default());
        let named = fs::metadata(dir.path().join(LOG)).expect("there");
        assert_eq!(log.expect("known").ino(), named.ino());
    }

    #[test]
    fn what_is_removed_is_gone_and_what_is_not_ours_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let inner = dir.path().join("checkpoint");
        remove_checkpoint(&inner).expect("there is none");
        drop(begun(&inner));
        fs::write(inner.join("0.pairs"), "x").expect("written");
        remove_checkpoint(&inner).expect("removed");
        assert!(!inner.exists());
        drop(begun(&inner));
        fs::write(inner.join("notes.txt"), "mine").expect("written");
        remove_checkpoint(&inner).expect("removed");
        assert_eq!(fs::read_dir(&inner).expect("still there").count(), 1);
    }

    #[test]
    fn a_folder_that_never_was_a_checkpoint_keeps_its_files() {
        // A folder of numbered data files, named by mistake, lost all files called <number>.pairs.
        let dir = tempfile::tempdir().expect("a folder");
        let [mine, log] = ["7.pairs", LOG].map(|name| dir.path().join(name));
        fs::write(&mine, "mine").expect("written");
        let why = remove_checkpoint(dir.path()).expect_err("no checkpoint").to_string();
        assert!(why.contains("there is no checkpoint in "), "{why}");
        fs::write(&log, "dear diary").expect("written");
        remove_checkpoint(dir.path()).expect_err("the log is another");
        assert!(log.exists());
        // And what a checkpoint here would be asked to overwrite is refused.
        fs::remove_file(&log).expect("removed");
        let why = Checkpoint::open(dir.path(), &job()).err().expect("refused").to_string();
        assert!(why.contains("the file 7.pairs in it is no checkpoint's"), "{why}");
        assert!(!log.exists());
        // Beside a checkpoint of two reducers it stays, too.
        fs::remove_file(&mine).expect("removed");
        drop(begun(dir.path()));
        fs::write(&mine, "mine").expect("written");
        fs::write(dir.path().join("1.pairs"), "ours").expect("written");
        remove_checkpoint(dir.path()).expect("removed");
        assert_eq!(fs::read(&mine).expect("there"), b"mine");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    #[test]
    fn a_removal_that_was_interrupted_is_completed_by_whoever_comes_next() {
        let dir = tempfile::tempdir().expect("a folder");
        let interrupted = || {
            let mut checkpoint = begun(dir.path());
            checkpoint.note_stage(3, &[10, 0]).expect("written");
            checkpoint.write(["removed now".to_owned()]).expect("written");
            fs::write(dir.path().join("1.pairs"), "old").expect("written");
        };
        interrupted();
        let (checkpoint, facts) = Checkpoint::open(dir.path(), &job()).expect("begun anew");
        assert_eq!(facts, Facts::default());
        assert!(!dir.path().join("1.pairs").exists());
        drop(checkpoint);
        remove_checkpoint(dir.path()).expect("removed");
        interrupted();
        remove_checkpoint(dir.path()).expect("removed");
        assert!(!dir.path().exists());
    }
}
