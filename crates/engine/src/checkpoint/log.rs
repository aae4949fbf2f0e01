//! The log of a checkpoint: the state of a job on disk, from which a later run continues.
//!
//! ```text
//!  DIR/checkpoint.log  a line for each fact, with its checksum: | CRC-32, 8 hex digits | a space | the fact |
//!  DIR/0.pairs         runs of the first reducer, one for each stage, one after the other (format: see `run.rs`)
//!  DIR/0.result        the result that the first reducer has made of them
//!
//!  facts:  job WHAT: VALUE          what the result depends on, in the order of `identity`
//!          plan WORKERS MAP REDUCE SPLIT SEED    how the input was cut, the number of shares, the seed of hashes
//!          bad SOURCE OFFSET BYTES CAUSE    a record that was set aside, with the cause in hex
//!          stage TASKS BYTES BYTES ...      more tasks that are done, and the bytes of their pairs for each reducer
//!          result REDUCER BYTES             this reducer has made its part of the result
//!          removed NOW                      the files are being removed: no fact above counts any longer
//! ```
//!
//! A fact counts when its line is whole, and its line is written when the data that it describes is on disk. Bytes
//! after the last whole line, and data not covered by whole lines, were being written when the job ended; they are
//! overwritten.
//!
//! The folder must belong to this user alone, or the job does not begin: whoever can write to it can change the result.
//! Still, no number in the log is trusted before it is checked against the others, the job and the files. So a log with
//! any content leads to a clear error at worst.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_os::folder::Folder;
use rustix::fs::{FlockOperation, flock};

use crate::control::place::Place;
use crate::error::{Error, Result};
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::tasks::Tasks;
use crate::plan::settings::Settings;

const LOG: &str = "checkpoint.log";
/// The time that the processes of a killed run may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of bytes at the beginning and the end of a file that distinguish it from another with the same size and
/// time.
const BLOCK_BYTES: u64 = 64 << 10;
/// The longest line: a command with very many arguments.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// The largest number of map or reduce workers in any plan.
const WORKERS_MAX: u64 = 1024;
/// The largest number of tasks unless the user asks for more; no plan cuts smaller.
const TASKS_MAX: u64 = 1 << 22;

/// The facts in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    job: Vec<String>,
    /// Fused (1) or not (0), map workers, reduce workers, bytes of a split, the seed of hashes.
    plan: Option<[u64; 5]>,
    pub bad: Vec<(Place, String)>,
    /// Whether the checkpoint is being removed.
    removed: bool,
    /// The number of tasks that are done, from the first on.
    pub tasks: usize,
    /// For each stage, the bytes of pairs of each reducer.
    stages: Vec<Vec<u64>>,
    /// For each reducer, the sum over all stages.
    saved: Vec<u64>,
    /// For each reducer, the bytes of its result, if it exists.
    results: Vec<Option<u64>>,
}

impl Facts {
    /// Returns offsets and sizes of the runs of `reducer`, and the offset of its next run.
    pub fn runs(&self, reducer: usize) -> (Vec<(u64, u64)>, u64) {
        let mut end = 0;
        let runs = self.stages.iter().map(|bytes| {
            let start = end;
            end += bytes[reducer];
            (start, bytes[reducer])
        });
        (runs.filter(|(_, bytes)| *bytes > 0).collect(), end)
    }

    /// Returns the seed of the hashes by which the pairs were partitioned.
    pub fn seed(&self) -> Option<u64> {
        self.plan.map(|[.., seed]| seed)
    }

    /// Returns the size of the result of `reducer`, if it exists.
    pub fn result(&self, reducer: usize) -> Option<u64> {
        self.results.get(reducer).copied().flatten()
    }

    /// Adds one fact; returns `None` if it is invalid after the facts before it.
    fn take(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let numbers = || rest.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
        let reducers = self.plan.map(|[_, _, reducers, ..]| reducers as usize);
        if self.removed || (kind == "job" || kind == "plan") == reducers.is_some() && kind != "removed" {
            return None;
        }
        match (kind, reducers) {
            ("job", _) => self.job.push(rest.to_owned()),
            ("removed", _) => self.removed = true,
            ("plan", _) => {
                let plan: [u64; 5] = numbers()?.try_into().ok()?;
                let workers = 1..=WORKERS_MAX;
                let can_be = plan[0] < 2 && workers.contains(&plan[1]) && workers.contains(&plan[2]) && plan[3] > 0;
                self.plan = Some(can_be.then_some(plan)?);
            }
            ("stage", Some(reducers)) => {
                let numbers = numbers()?;
                let (tasks, bytes) = numbers.split_first()?;
                if *tasks == 0 || bytes.len() != reducers || !self.results.is_empty() {
                    return None;
                }
                self.saved.resize(reducers, 0);
                for (saved, bytes) in self.saved.iter_mut().zip(bytes) {
                    *saved = saved.checked_add(*bytes)?;
                }
                self.tasks = self.tasks.checked_add(usize::try_from(*tasks).ok()?)?;
                self.stages.push(bytes.to_vec());
            }
            ("result", Some(reducers)) => {
                let [reducer, bytes]: [u64; 2] = numbers()?.try_into().ok()?;
                let reducer = usize::try_from(reducer).ok().filter(|reducer| *reducer < reducers)?;
                self.results.resize(reducers, None);
                if self.results[reducer].replace(bytes).is_some() {
                    return None;
                }
            }
            ("bad", Some(_)) => {
                let mut words = rest.split(' ');
                let mut number = || words.next()?.parse::<u64>().ok();
                let place = Place { source: usize::try_from(number()?).ok()?, offset: number()?, bytes: number()? };
                let hex = words.next()?.as_bytes();
                if hex.len() % 2 != 0 || words.next().is_some() {
                    return None;
                }
                let cause = hex.chunks(2).map(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
                self.bad.push((place, String::from_utf8(cause.collect::<Option<Vec<u8>>>()?).ok()?));
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns whether the log cuts this input into more pieces than any plan does, and the user has not asked for
    /// that.
    pub fn cuts_too_small(&self, input_bytes: u64, asked: Option<u64>) -> bool {
        self.plan.is_some_and(|[_, _, _, split, _]| asked != Some(split) && input_bytes / split > TASKS_MAX)
    }

    /// Returns what in the facts is impossible for a job with these tasks and this plan, if anything.
    pub fn misfit(&self, tasks: &Tasks, plan: [u64; 5]) -> Option<&'static str> {
        let reads = |place: &Place| {
            let end = place.offset.checked_add(place.bytes);
            let source = tasks.sources.get(place.source);
            source.zip(end).is_some_and(|(source, end)| source.is_decoded() || end <= source.bytes)
        };
        let mut places: Vec<&Place> = self.bad.iter().map(|(place, _)| place).collect();
        places.sort_by_key(|place| (place.source, place.offset));
        let overlap = |pair: &[&Place]| pair[0].source == pair[1].source && pair[0].range().end > pair[1].offset;
        match () {
            () if self.plan.is_some_and(|before| before != plan) => Some("a plan that this job cannot have"),
            () if self.tasks > tasks.len() => Some("more tasks than the input has"),
            () if !self.results.is_empty() && self.tasks < tasks.len() => Some("results before all tasks were done"),
            () if !places.iter().all(|place| reads(place)) => Some("records that the input does not have"),
            () if places.windows(2).any(overlap) => Some("records that overlap"),
            () => None,
        }
    }

    /// Returns a file of `folder` that is shorter than the log says, if there is one.
    fn check_files(&self, folder: &Folder) -> io::Result<Option<OsString>> {
        for name in names_of_files(folder)? {
            let bytes = folder.open_file(&name, false, false)?.metadata()?.len();
            let Some((reducer, is_result)) = number_in(&name) else { continue };
            let expected = match is_result {
                true => self.result(reducer),
                false => self.saved.get(reducer).copied(),
            };
            if expected.is_some_and(|expected| bytes < expected) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// Reads the facts of a log, and the size of its whole lines.
///
/// # Errors
/// The log cannot be read, or a whole line is not a valid fact.
pub(crate) fn parse(log: impl Read) -> io::Result<(Facts, u64)> {
    let (mut facts, mut end, mut number, mut line) = (Facts::default(), 0, 0, Vec::new());
    let mut log = BufReader::new(log);
    loop {
        line.clear();
        (&mut log).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let whole = || {
            let line = str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
            let (checksum, fact) = line.split_once(' ')?;
            (u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(fact.as_bytes())).then_some(fact)
        };
        let Some(fact) = whole() else { return Ok((facts, end)) };
        number += 1;
        if facts.take(fact).is_none() {
            let fact: String = fact.chars().take(100).collect();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {number} of its {LOG} says {fact:?}, which no run has written"),
            ));
        }
        end += line.len() as u64;
    }
}

/// The log of a checkpoint, open and locked against other runs.
pub(crate) struct Checkpoint {
    /// The name of the folder in messages.
    pub dir: PathBuf,
    pub folder: Arc<Folder>,
    log: File,
}

impl Checkpoint {
    /// Opens the checkpoint in `dir`, or begins one. `job` lists everything that the result depends on; a checkpoint
    /// with another list is refused.
    pub fn open(dir: &Path, job: &[String]) -> Result<(Checkpoint, Facts)> {
        let failed = |source| Error::Checkpoint { path: dir.to_owned(), source };
        // Workers inherit this file from their coordinator, so once the lock is free none of them is left.
        let began = Instant::now();
        let (folder, mut log) = loop {
            let folder = Folder::private(dir).map_err(failed)?;
            if let Some(log) = lock(&folder, true).map_err(failed)? {
                break (folder, log);
            } else if began.elapsed() > PATIENCE {
                return Err(Error::CheckpointInUse { path: dir.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut start = Vec::new();
        (&log).take(13).read_to_end(&mut start).map_err(failed)?;
        // Even if its first line was cut off.
        let (checksum, word) = start.split_at(start.len().min(8));
        let is_ours = checksum.iter().all(u8::is_ascii_hexdigit) && b" job ".starts_with(word);
        if !is_ours {
            return Err(failed(io::Error::other(format!("the file {LOG} in it is something else"))));
        }
        let (facts, end) = read_log(&log).map_err(failed)?;
        if start.is_empty()
            && let Some(name) = names_of_files(&folder).map_err(failed)?.pop()
        {
            // The log did not exist before, or comes from an attempt in a folder that is not a checkpoint.
            drop(folder.remove(LOG));
            let name = name.display();
            return Err(failed(io::Error::other(format!(
                "the file {name} in it is no checkpoint's, and would be overwritten"
            ))));
        }
        let (facts, end) = match facts.removed {
            true => {
                remove_files(&folder, &facts).map_err(failed)?;
                (Facts::default(), 0)
            }
            false => (facts, end),
        };
        if facts.plan.is_some() && facts.job != job {
            return Err(Error::CheckpointOfAnother { path: dir.to_owned(), why: difference(&facts.job, job) });
        }
        if facts.check_files(&folder).map_err(failed)?.is_some() {
            return Err(Error::CheckpointDamaged { path: dir.to_owned() });
        }
        log.set_len(end).map_err(failed)?;
        log.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut checkpoint = Checkpoint { dir: dir.to_owned(), folder: Arc::new(folder), log };
        if facts.plan.is_some() {
            return Ok((checkpoint, facts));
        }
        // Its first lines were never complete, so nothing was done yet.
        checkpoint.log.set_len(0).map_err(failed)?;
        checkpoint.write(job.iter().map(|line| format!("job {line}")))?;
        checkpoint.folder.sync().map_err(failed)?;
        Ok((checkpoint, Facts::default()))
    }

    /// Reads the facts that are on disk now, for workers.
    pub fn read(folder: &Folder) -> io::Result<Facts> {
        Ok(read_log(&folder.open_file(LOG, false, false)?)?.0)
    }

    /// Returns the error for a checkpoint whose log is impossible.
    pub fn misfit(&self, what: &str) -> Error {
        let source = io::Error::new(io::ErrorKind::InvalidData, format!("its {LOG} speaks of {what}"));
        Error::Checkpoint { path: self.dir.clone(), source }
    }

    /// Records how the job runs.
    pub fn begin(&mut self, plan: [u64; 5]) -> Result<()> {
        let [fused, map, reduce, split, seed] = plan;
        self.write([format!("plan {fused} {map} {reduce} {split} {seed}")])
    }

    /// Records that records were set aside, each with its cause.
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

    /// Records that `tasks` more tasks are done, whose pairs have these sizes for each reducer.
    pub fn note_stage(&mut self, tasks: usize, bytes: &[u64]) -> Result<()> {
        let bytes: String = bytes.iter().map(|bytes| format!(" {bytes}")).collect();
        self.write([format!("stage {tasks}{bytes}")])
    }

    /// Records that `reducer` has made its result.
    pub fn note_result(&mut self, reducer: usize, bytes: u64) -> Result<()> {
        self.write([format!("result {reducer} {bytes}")])
    }

    /// Appends facts and waits until they are on disk, after the names of the files that they mention.
    fn write(&mut self, facts: impl IntoIterator<Item = String>) -> Result<()> {
        let lines: String = facts.into_iter().map(|fact| line(&fact)).collect();
        let written =
            self.folder.sync().and_then(|()| self.log.write_all(lines.as_bytes())).and_then(|()| self.log.sync_data());
        written.map_err(|source| Error::Checkpoint { path: self.dir.clone(), source })
    }
}

/// Reads the facts of a log from its beginning.
fn read_log(mut log: &File) -> io::Result<(Facts, u64)> {
    log.seek(SeekFrom::Start(0))?;
    parse(log)
}

/// Opens and locks the log in a folder; `None` if another run holds the lock, or has just removed the log.
fn lock(folder: &Folder, create: bool) -> io::Result<Option<File>> {
    let log = folder.open_file(LOG, create, true)?;
    match flock(&log, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // The former owner may have removed the file after it was opened here; then the lock is on a file that nobody else
    // can find.
    Ok(folder.has(LOG, &log)?.then_some(log))
}

impl Settings {
    /// Changes the settings so that the input is cut as in the job that is continued.
    pub fn continue_with(&mut self, facts: &Facts) {
        if let Some([fused, map, reduce, split, _]) = facts.plan {
            let [map, reduce] = [map, reduce].map(|workers| workers as usize);
            (self.workers, self.map_workers, self.reduce_workers) = match fused {
                1 => (Some(map), None, None),
                _ => (None, Some(map), Some(reduce)),
            };
            self.split_bytes = Some(split);
        }
    }
}

/// Lists everything that the result of a job depends on, one per line; `program` describes what the map function
/// depends on besides its input.
pub(crate) fn identity(program: &str, types: &str, settings: &Settings, sources: &[Source]) -> Result<Vec<String>> {
    let one_line = |text: &str| text.replace('\n', " ");
    let Settings { order, limit, records, combine, combine_after, deterministic, skip_bad_records, .. } = settings;
    let built = fs::metadata("/proc/self/exe");
    let built =
        built.map_or(String::new(), |facts| format!("{} bytes, {}.{}", facts.len(), facts.mtime(), facts.mtime_nsec()));
    let mut lines = vec![
        format!("the version: {}", env!("CARGO_PKG_VERSION")),
        format!("the program file: {built}"),
        format!("the program: {}", one_line(program)),
        format!("its types: {types}"),
        format!("records: {}", format_of(*records)),
        format!("options: {order:?} {limit:?} {combine:?} {combine_after:?} {deterministic} {skip_bad_records}"),
    ];
    for source in sources {
        let failed = |error| Error::Input { path: source.name.clone(), source: error };
        let file = source.open_file().map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        let mut ends = Vec::new();
        for start in [0, facts.len().saturating_sub(BLOCK_BYTES)] {
            (&file).seek(SeekFrom::Start(start)).map_err(failed)?;
            (&file).take(BLOCK_BYTES).read_to_end(&mut ends).map_err(failed)?;
        }
        let name = one_line(&source.name.to_string_lossy());
        let (bytes, hash) = (facts.len(), crc32fast::hash(&ends));
        let (tag, records) = (source.tag(), format_of(source.records_or(*records)));
        let changed = format!("{}.{:09}", facts.mtime(), facts.mtime_nsec());
        lines.push(format!("{name}: {bytes} bytes, {changed}, {hash:08x}, tag {tag}, {records}"));
    }
    Ok(lines)
}

/// Describes a format of records.
fn format_of(records: Records) -> String {
    match records {
        // A function has no lasting name, so its results identify it.
        Records::Separated(separates) => {
            format!("separated by {:?}", (0..=255).filter(|byte| separates(*byte)).collect::<Vec<u8>>())
        }
        other => format!("{other:?}"),
    }
}

/// Describes the first difference.
fn difference(before: &[String], now: &[String]) -> String {
    let pairs = before.iter().zip(now).find(|(before, now)| before != now);
    match pairs {
        None => format!("it had {} input files, and now there are {}", before.len(), now.len()),
        Some((before, now)) => {
            // Names may contain a colon with a space after it; values do not.
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

/// Returns the files of a folder, except the log, whose names are those of a checkpoint's files.
fn names_of_files(folder: &Folder) -> io::Result<Vec<OsString>> {
    Ok(folder.names()?.into_iter().filter(|name| number_in(name).is_some()).collect())
}

/// Returns the reducer whose file has this name, and whether the file is its result.
fn number_in(name: &OsStr) -> Option<(usize, bool)> {
    let name = name.to_str()?;
    let pairs = || Some((name.strip_suffix(".pairs")?, false));
    let (number, is_result) = pairs().or_else(|| Some((name.strip_suffix(".result")?, true)))?;
    Some((number.parse().ok()?, is_result))
}

/// Removes the files of a checkpoint with this log, except the log.
fn remove_files(folder: &Folder, facts: &Facts) -> io::Result<()> {
    let reducers = facts.plan.map_or(0, |[_, _, reducers, ..]| reducers);
    let mut names = (0..reducers).flat_map(|reducer| [format!("{reducer}.pairs"), format!("{reducer}.result")]);
    names.try_for_each(|name| folder.remove(name))
}

/// Removes the checkpoint in `dir`, after the result is stored or when it is no longer wanted, and also the folder if
/// nothing else is in it. Succeeds if there is no checkpoint or no folder. A checkpoint that another run uses is left
/// alone. Only files that the log mentions are removed.
///
/// # Errors
/// Those of the system; the folder does not belong to this user alone; or it contains other files and no checkpoint. In
/// the last two cases nothing is removed.
pub fn remove_checkpoint(dir: &Path) -> io::Result<()> {
    let folder = match Folder::open_private(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folder => folder?,
    };
    let is_empty = folder.names()?.is_empty();
    let none = || io::Error::other(format!("there is no checkpoint in {}: nothing was removed", dir.display()));
    let mut log = match lock(&folder, false) {
        Ok(Some(log)) => log,
        Ok(None) => return Ok(()),
        // A removal was interrupted before its last step.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_empty => return fs::remove_dir(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(none()),
        Err(error) => return Err(error),
    };
    let (facts, end) = read_log(&log)?;
    if facts.job.is_empty() && log.metadata()?.len() > 0 {
        return Err(none());
    }
    // First record that the files no longer count, because otherwise the log would mention missing files. Remove the
    // log last, because until then no other run begins here.
    if !facts.job.is_empty() && !facts.removed {
        log.set_len(end)?;
        log.write_all(line("removed now").as_bytes())?;
    }
    remove_files(&folder, &facts)?;
    folder.remove(LOG)?;
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

/// Returns the line of a fact in the log.
fn line(fact: &str) -> String {
    format!("{:08x} {fact}\n", crc32fast::hash(fact.as_bytes()))
}

#[cfg(test)]
mod tests;
