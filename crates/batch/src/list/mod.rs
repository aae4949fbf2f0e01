//! The jobs of a file, of the command line, or of standard input. From a pipe, they arrive while the queue runs.

pub mod values;
pub mod dry;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::queue::{Arriving, BatchJob, Keys, Shell, table};
use gristmill::{Error, units};
use rustix::fs::FileType;

use self::values::{CommandJobs, Values};
use gristmill_report::messages::tell;

/// The settings of a job that names none.
#[derive(Clone, Copy, Default)]
pub struct Defaults {
    pub timeout: Option<Duration>,
    pub retries: u32,
    pub retry_delay: Option<Duration>,
}

/// The jobs so far, and where further ones come from.
pub struct List {
    /// The real path of this process's folder: where a job runs is part of what it is.
    folder: PathBuf,
    jobs: Vec<BatchJob>,
    keys: Vec<String>,
    next_keys: Keys,
    defaults: Defaults,
    /// `None` when the list has ended.
    source: Option<ListFile>,
}

/// The file that a list arrives from.
struct ListFile {
    file: File,
    name: PathBuf,
    arriving: Arriving,
}

/// The bytes of a list that are read at once.
const PIECE_BYTES: usize = 64 << 10;

impl List {
    /// Makes the list of a command with values, or of a file. A pipe is not read yet.
    pub fn open(path: Option<&Path>, command: &[OsString], values: &Values, defaults: Defaults) -> Result<List, Error> {
        let (jobs, keys) = (Vec::new(), Vec::new());
        let folder = env::current_dir().map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::NotFound => io::Error::other("it was deleted: cd to one that is there"),
                _ => source,
            };
            Error::System { what: "asking for the current folder", source }
        })?;
        let mut list = List { folder, jobs, keys, next_keys: Keys::default(), defaults, source: None };
        let (path, arriving) = if command.is_empty() {
            values.check_list()?;
            if let Some(path) = path.filter(|path| is_toml(path)) {
                list.add(jobs_of_table(path, &values.shell())?)?;
                return Ok(list);
            }
            let path = path.filter(|path| path.as_os_str() != "-").map(Path::to_owned);
            (path, Arriving::lines(values.shell(), values.separator()))
        } else {
            match values.jobs(command)? {
                CommandJobs::Whole(jobs) => {
                    list.add(jobs)?;
                    return Ok(list);
                }
                CommandJobs::Arriving(path, template) => (path, Arriving::values(template, values.separator())),
            }
        };
        let source = ListFile::open(path, arriving)?;
        if source.file.is_terminal() {
            let what = if command.is_empty() { "commands" } else { "values" };
            tell(format_args!("reading {what} from the terminal, one in each line; Ctrl-D ends the list"));
        }
        let is_whole = !arrives(&source.file);
        list.source = Some(source);
        while is_whole && list.source.is_some() {
            list.take_in()?;
        }
        Ok(list)
    }

    /// The folder in which jobs run that name none.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The jobs so far.
    pub fn jobs(&self) -> &[BatchJob] {
        &self.jobs
    }

    /// The key of a job in the journal.
    pub fn key(&self, job: usize) -> &str {
        &self.keys[job]
    }

    /// The file from which further jobs arrive; `None` when the list has ended.
    pub fn file(&self) -> Option<&File> {
        self.source.as_ref().map(|source| &source.file)
    }

    /// Reads the next piece of the list, waiting for it if need be. Returns the places of the jobs in it.
    pub fn take_in(&mut self) -> Result<Range<usize>, Error> {
        let from = self.jobs.len();
        if let Some(source) = &mut self.source {
            let read = source.next().map_err(|error| Error::Input { path: source.name.clone(), source: error });
            let (jobs, is_end) = match read {
                Ok(read) => read,
                Err(failure) => {
                    self.source = None;
                    return Err(failure);
                }
            };
            if is_end {
                self.source = None;
            }
            self.add(jobs)?;
        }
        Ok(from..self.jobs.len())
    }

    fn add(&mut self, jobs: Vec<BatchJob>) -> Result<(), Error> {
        for job in jobs {
            let mut job = job.in_folder(&self.folder);
            job.timeout = job.timeout.or(self.defaults.timeout).filter(|time| !time.is_zero());
            job.retries = job.retries.or(Some(self.defaults.retries));
            if job.retry_delay.is_some() && job.retries == Some(0) {
                let number = self.jobs.len() + 1;
                return Err(Error::Setting(format!(
                    "job {number}: retry_delay has nothing to delay, because the job is not tried again; add retries"
                )));
            }
            job.retry_delay = job.retry_delay.or(self.defaults.retry_delay);
            self.keys.push(self.next_keys.of(&job));
            self.jobs.push(job);
        }
        Ok(())
    }
}

impl ListFile {
    /// Opens a file, or without a path standard input.
    fn open(path: Option<PathBuf>, arriving: Arriving) -> Result<ListFile, Error> {
        let file = match &path {
            Some(path) => File::open(path),
            None => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        };
        let name = path.unwrap_or_else(|| "standard input".into());
        match file {
            Ok(file) => Ok(ListFile { file, name, arriving }),
            Err(source) => Err(Error::Input { path: name, source }),
        }
    }

    /// Reads a piece. Returns the jobs that it completes, and whether the list has ended.
    fn next(&mut self) -> io::Result<(Vec<BatchJob>, bool)> {
        let mut piece = vec![0; PIECE_BYTES];
        let count = match self.file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok((Vec::new(), false)),
            read => read?,
        };
        let jobs = if count > 0 { self.arriving.take(&piece[..count]) } else { self.arriving.end() };
        Ok((jobs.map_err(io::Error::other)?, count == 0))
    }
}

/// Returns true if a file's content arrives while it is read: a pipe, a socket, or a terminal.
fn arrives(file: &File) -> bool {
    let kind = rustix::fs::fstat(file).map(|about| FileType::from_raw_mode(about.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket)) || file.is_terminal()
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

fn jobs_of_table(path: &Path, shell: &Shell) -> Result<Vec<BatchJob>, Error> {
    let failed = |source| Error::Input { path: path.to_owned(), source };
    let text = String::from_utf8(fs::read(path).map_err(failed)?);
    let text = text.map_err(|_| failed(io::Error::other("it is not text in UTF-8")))?;
    let bytes = |size: &str| units::bytes(size).map(|bytes| bytes as u64);
    // Some editors write a mark at the beginning.
    table(text.trim_start_matches('\u{feff}'), shell, bytes).map_err(|why| failed(io::Error::other(why)))
}
