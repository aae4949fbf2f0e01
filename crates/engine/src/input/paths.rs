//! What a job reads: files, directories, patterns, pipes.
//!
//! Everything becomes a list of [`Source`]s of known size before the first worker starts ([`crate::input::walk`]). What has no size
//! (a pipe, standard input) is first copied to an unnamed temporary file ([`crate::input::spool`]), because a task that is tried
//! again must read the same bytes again. If bad files are set aside, every file is read once to its end before the job
//! ([`crate::job::bad_files`]), so that nothing of a bad one is ever counted.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_os::file_size::LimitIsAnError;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{Asked, Error, Result};
use crate::input::memory::{Memory, is_limit};
use crate::input::quotes::{self, State};
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::walk::{LeftOut, Tallies, Tally, Walk};
use crate::job::bad_files;
use crate::plan::settings::Settings;

/// The input of a job.
#[derive(Clone, Debug)]
pub struct Input {
    entries: Vec<Entry>,
    look: Look,
    /// What the paths lead to, when somebody has looked already.
    opened: Option<Arc<Opened>>,
}

/// A path.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Somebody named it.
    Named(PathBuf),
    /// It stands in a list.
    Listed(PathBuf),
    /// It matches a pattern.
    Matched(PathBuf),
}

/// How files are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub follow: bool,
    pub skip_bad_files: u32,
    /// What the job may take, if somebody has said it.
    pub memory_bytes: Option<usize>,
    pub spool_dir: Option<PathBuf>,
    pub read_once: bool,
    pub news: News,
}

/// Whom to tell what was found.
#[derive(Clone, Default)]
pub(crate) struct News(Option<Arc<Tell>>);

type Tell = dyn Fn(&InputNews<'_>) + Send + Sync;

impl News {
    pub fn tell(&self, news: &InputNews<'_>) {
        if let Some(tell) = &self.0 {
            tell(news);
        }
    }
}

impl fmt::Debug for News {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.0.is_some() { "told" } else { "not told" })
    }
}

/// Something that a user should know of the input ([`Input::on_news`]).
#[derive(Debug)]
#[non_exhaustive]
pub enum InputNews<'n> {
    /// Some paths are not read.
    LeftOut(&'n Tally),
    /// A file was set aside.
    SetAside(&'n BadFile),
    /// A stream is being copied.
    Copied {
        /// What messages call it.
        name: &'n Path,
        /// How much has been copied so far.
        bytes: u64,
    },
    /// Files are being read to their ends, to find the bad ones.
    Checking {
        /// How many.
        files: usize,
        /// Their size together.
        bytes: u64,
    },
}

/// A file that was set aside ([`Input::skip_bad_files`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The file or directory.
    pub path: PathBuf,
    /// The error that it would have been.
    pub cause: String,
}

/// What a program says of a file that it has looked at ([`Input::sift`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be read.
    Fit,
    /// It is a file of another kind, and why that is known. If it was found below a directory it is left out, else it is bad.
    OtherKind(String),
    /// It should be of the right kind, and cannot be read, and why.
    Bad(String),
    /// To read it takes more than this job may take: what, how much, and how much it may. That is no fault of the file, so it is
    /// an error even if bad files are set aside.
    TooLarge(String),
}

impl Verdict {
    /// The sentence about a file, unless that is fit.
    fn error(self, path: &Path) -> Option<Error> {
        match self {
            Verdict::Fit => None,
            Verdict::OtherKind(why) | Verdict::Bad(why) => Some(Error::Unfit { path: path.to_owned(), why }),
            Verdict::TooLarge(why) => Some(Error::TooLarge { what: format!("{}: {why}", path.display()) }),
        }
    }

    /// The same verdict, said in other words.
    pub fn map(self, words: impl FnOnce(String) -> String) -> Verdict {
        match self {
            Verdict::Fit => Verdict::Fit,
            Verdict::OtherKind(why) => Verdict::OtherKind(words(why)),
            Verdict::Bad(why) => Verdict::Bad(words(why)),
            Verdict::TooLarge(why) => Verdict::TooLarge(words(why)),
        }
    }
}

/// What is wrong with a file.
impl From<String> for Verdict {
    fn from(why: String) -> Verdict {
        Verdict::Bad(why)
    }
}

/// What was found when a file was read: a lack of memory or of file descriptors is no fault of the file.
impl From<io::Error> for Verdict {
    fn from(error: io::Error) -> Verdict {
        let why = error.to_string();
        if is_limit(&error) { Verdict::TooLarge(why) } else { Verdict::Bad(why) }
    }
}

/// The sources of a job, and the files without a name that must stay open as long as it runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub sources: Arc<[Source]>,
    kept: Arc<[File]>,
    /// Files that were set aside.
    bad: Vec<BadFile>,
}

impl Look {
    /// What the job may take.
    pub fn memory(&self) -> Memory {
        // A kernel that does not say what is available sets no limit.
        let available = || gristmill_os::machine::memory_available_bytes().unwrap_or(u64::MAX);
        Memory::of(self.memory_bytes.map_or_else(available, |bytes| bytes as u64))
    }

    /// Sets a file aside because of `error`, or ends with it.
    pub fn set_aside(&self, path: &Path, error: Error, bad: &mut Vec<BadFile>) -> Result<()> {
        let limit = self.skip_bad_files;
        match error {
            error if error.is_limit() => return Err(error),
            error if limit == 0 => return Err(error),
            error if bad.len() >= limit as usize => {
                return Err(Error::TooManyBadFiles { limit, last: error.to_string() });
            }
            error => {
                let file = BadFile { path: path.to_owned(), cause: error.to_string() };
                self.news.tell(&InputNews::SetAside(&file));
                bad.push(file);
            }
        }
        Ok(())
    }
}

impl Input {
    /// Files, directories (every file below them, in the order of their names, without hidden ones and symbolic links), and
    /// `-` for standard input. A file that is named twice is read twice; one that is found below a directory is read once,
    /// however many paths lead to it.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Input {
        let entries = paths.into_iter().map(|path| Entry::Named(path.as_ref().to_owned())).collect();
        Input { entries, look: Look::default(), opened: None }
    }

    /// One more path, as in [`Input::paths`].
    pub fn and(mut self, path: impl Into<PathBuf>) -> Input {
        self.entries.push(Entry::Named(path.into()));
        self
    }

    /// More paths, which a list names. FIFOs, sockets and devices among them, which would keep a reader waiting, are left out.
    pub fn and_listed(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries.extend(paths.into_iter().map(Entry::Listed));
        self
    }

    /// More paths, which a pattern matches: as [`Input::and_listed`], but a file that is matched twice is read once.
    pub fn and_matched(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries.extend(paths.into_iter().map(Entry::Matched));
        self
    }

    /// Whether symbolic links below directories are followed.
    pub fn follow(mut self, follow: bool) -> Input {
        self.look.follow = follow;
        self
    }

    /// Sets up to so many files aside that cannot be read, are not what their names say, or are damaged anywhere.
    /// Nothing of them is counted: each file is read once to its end before the job begins. One more is an error.
    pub fn skip_bad_files(mut self, files: u32) -> Input {
        self.look.skip_bad_files = files;
        self
    }

    /// What the whole job may take of the memory, as [`Job::memory`](crate::Job::memory) says it too: what is made of the
    /// input before the job, as its list of files, stays within it. By default what is available.
    pub fn memory(mut self, bytes: usize) -> Input {
        self.look.memory_bytes = Some(bytes);
        self
    }

    /// What a program may take for what it makes of this input and keeps as long as its job runs
    /// ([`Job::holds`](crate::Job::holds)).
    pub fn program_memory(&self) -> Memory {
        self.look.memory()
    }

    /// The folder for copies of streams, which can be read only once. By default, that for temporary files.
    pub fn spool_dir(mut self, dir: impl Into<PathBuf>) -> Input {
        self.look.spool_dir = Some(dir.into());
        self
    }

    /// Whether streams are read as they come, by one worker each, and not copied to a file first. What was read is gone
    /// then: a worker that dies ends the job, and no program can look at them before ([`Input::sources`]).
    pub fn read_once(mut self, read_once: bool) -> Input {
        self.look.read_once = read_once;
        self
    }

    /// Calls `tell` with whatever a user should know of the input, while it is looked for.
    pub fn on_news(mut self, tell: impl Fn(&InputNews<'_>) + Send + Sync + 'static) -> Input {
        self.look.news = News(Some(Arc::new(tell)));
        self
    }

    /// Bytes that the program made itself. They are kept in memory, and may be read by many jobs.
    ///
    /// # Errors
    /// [`Error::System`] when the system has no memory for them.
    pub fn bytes(name: impl Into<PathBuf>, bytes: &[u8]) -> Result<Input> {
        const WHAT: &str = "keeping the input of a job in memory";
        let _guard = LimitIsAnError::new();
        let mut file: File = memfd_create(c"gristmill input", MemfdFlags::CLOEXEC).asked(WHAT)?.into();
        file.write_all(bytes).asked(WHAT)?;
        let source = Source::plain(name.into(), in_proc(&file), bytes.len() as u64);
        Ok(Input::of(Opened { sources: [source].into(), kept: [file].into(), bad: Vec::new() }))
    }

    fn of(opened: Opened) -> Input {
        Input { entries: Vec::new(), look: Look::default(), opened: Some(Arc::new(opened)) }
    }

    /// The files that the paths lead to: a program that must know a header, or a size, looks here before its job runs.
    /// They are looked for once; what cannot be read twice is copied now.
    ///
    /// # Errors
    /// As a job that reads this input: a path that leads nowhere, an empty directory. [`Error::Setting`] for a stream that is
    /// read as it comes ([`Input::read_once`]).
    pub fn sources(&mut self) -> Result<&[Source]> {
        let sources = self.look()?;
        match sources.iter().find(|source| source.is_stream()) {
            Some(stream) => Err(Error::Setting(format!(
                "{} cannot be read with --no-retry, because this program looks at its input before the job: leave out --no-retry",
                stream.name.display()
            ))),
            None => Ok(sources),
        }
    }

    /// The same for those who only want to know which files there are.
    ///
    /// # Errors
    /// As a job that reads this input.
    pub fn look(&mut self) -> Result<&[Source]> {
        let opened = self.open()?;
        Ok(&self.opened.insert(opened).sources)
    }

    /// Shows each file to a program that reads only some kinds of files. Those that it cannot read are left out, set aside, or
    /// an error: see [`Verdict`].
    ///
    /// # Errors
    /// As [`Input::sources`]; [`Error::Unfit`] for a file that is bad.
    pub fn sift(&mut self, mut look_at: impl FnMut(&Source) -> Verdict) -> Result<()> {
        self.sources()?;
        let opened = self.open()?;
        let (mut left_out, mut bad, mut sources) = (Tallies::default(), opened.bad.clone(), Vec::new());
        for source in opened.sources.iter() {
            match look_at(source) {
                Verdict::Fit => sources.push(source.clone()),
                Verdict::OtherKind(_) if source.is_below => left_out.add(LeftOut::OtherKind, &source.name),
                verdict => {
                    if let Some(error) = verdict.error(&source.name) {
                        self.look.set_aside(&source.name, error, &mut bad)?;
                    }
                }
            }
        }
        left_out.tell(&self.look);
        if sources.is_empty() {
            return Err(nothing_left(&left_out, &bad));
        }
        self.opened = Some(Arc::new(Opened { sources: sources.into(), kept: opened.kept.clone(), bad }));
        Ok(())
    }

    /// If bad files are set aside, calls `check` for each file, in processes of their own, and sets those aside of which it
    /// says that they are bad.
    ///
    /// # Errors
    /// As [`Input::sift`].
    pub fn check(&mut self, check: impl Fn(&Source) -> Verdict + Sync) -> Result<()> {
        if self.look.skip_bad_files == 0 {
            return Ok(());
        }
        let found = bad_files::all(&self.open()?.sources, self.look.memory_bytes, true, |source| {
            check(source).error(&source.name).map_or(Ok(()), Err)
        })?;
        self.set_aside_those(&found)
    }

    /// Sets aside what a check has found: numbers of sources, each with the whole sentence.
    fn set_aside_those(&mut self, found: &HashMap<usize, String>) -> Result<()> {
        let opened = self.open()?;
        let (mut bad, mut sources) = (opened.bad.clone(), Vec::new());
        for (number, source) in opened.sources.iter().enumerate() {
            match found.get(&number) {
                None => sources.push(source.clone()),
                Some(cause) => {
                    let error = Error::NoInput { what: cause.clone() };
                    self.look.set_aside(&source.name, error, &mut bad)?;
                }
            }
        }
        if sources.is_empty() {
            return Err(nothing_left(&Tallies::default(), &bad));
        }
        self.opened = Some(Arc::new(Opened { sources: sources.into(), kept: opened.kept.clone(), bad }));
        Ok(())
    }

    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        let _guard = LimitIsAnError::new();
        if let Some(opened) = &self.opened {
            return Ok(opened.clone());
        }
        if self.entries.is_empty() {
            return Err(Error::NoInput {
                what: "no input was named: give files, directories, or - for standard input".into(),
            });
        }
        let look = &self.look;
        let mut walk = Walk::new(look);
        self.entries.iter().try_for_each(|entry| walk.add(entry))?;
        let Walk { sources, kept, bad, left_out, .. } = walk;
        left_out.tell(look);
        if sources.is_empty() {
            return Err(nothing_left(&left_out, &bad));
        }
        let opened = Arc::new(Opened { sources: sources.into(), kept: kept.into(), bad });
        if look.skip_bad_files == 0 {
            return Ok(opened);
        }
        let bytes = opened.sources.iter().map(|source| source.bytes).sum();
        look.news.tell(&InputNews::Checking { files: opened.sources.len(), bytes });
        let mut input = Input { entries: Vec::new(), look: look.clone(), opened: Some(opened) };
        let found = bad_files::all(&input.open()?.sources, look.memory_bytes, false, bad_files::read_to_the_end)?;
        input.set_aside_those(&found)?;
        input.open()
    }
}

/// No file is left to be read.
fn nothing_left(left_out: &Tallies, bad: &[BadFile]) -> Error {
    let aside = bad.first().map(|first| match bad.len() {
        1 => format!("1 file was set aside: {}", first.cause),
        files => format!("{files} files were set aside; the first: {}", first.cause),
    });
    let whys: Vec<_> = [left_out.sentence()].into_iter().filter(|why| !why.is_empty()).chain(aside).collect();
    Error::NoInput { what: format!("there is nothing left to read: {}", whys.join("; ")) }
}

impl Opened {
    /// True when some of it was copied from a stream, or made by the program: the next run of the job cannot read it.
    pub fn is_spooled(&self) -> bool {
        !self.kept.is_empty() || self.has_stream()
    }

    /// True when some of it is read as it comes.
    pub fn has_stream(&self) -> bool {
        self.sources.iter().any(Source::is_stream)
    }

    /// The states of CSV before all places where a job with these settings and splits of `split_bytes` cuts a file;
    /// nothing for other records.
    pub fn quotes(
        &self,
        settings: &Settings,
        split_bytes: u64,
        on_news: &mut Option<Box<dyn FnMut(&str) + '_>>,
    ) -> Result<HashMap<(usize, u64), State>> {
        let Records::Csv(syntax) = settings.records else { return Ok(HashMap::new()) };
        let is_cut = |source: &Source| source.is_plain() && source.bytes > split_bytes;
        if !self.sources.iter().any(is_cut) {
            return Ok(HashMap::new());
        }
        // The others keep their numbers, and have nothing to read.
        let bytes = |source: &Source| if is_cut(source) { source.bytes } else { 0 };
        let sources = self.sources.iter();
        let sources = sources.map(|source| Source::plain(source.name.clone(), source.path.clone(), bytes(source)));
        let opened = Opened { sources: sources.collect(), kept: Arc::default(), bad: Vec::new() };
        quotes::states(Input::of(opened), settings, split_bytes, syntax, on_news)
    }
}

/// A path by which the workers can open what this process has open.
pub(crate) fn in_proc(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_is_its_files_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("b")).expect("made");
        for name in ["c", "b/x", "a", ".hidden"] {
            fs::write(dir.path().join(name), name).expect("written");
        }
        let opened = Input::paths([dir.path()]).open().expect("opened");
        let names: Vec<_> = opened.sources.iter().map(|source| source.name.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("a"), Path::new("b/x"), Path::new("c")]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = Input::paths(["/no/such/file"]).open().expect_err("missing").to_string();
        assert!(missing.starts_with("cannot read /no/such/file: "), "{missing}");
        let dir = tempfile::tempdir().expect("a directory");
        let empty = Input::paths([dir.path()]).open().expect_err("empty").to_string();
        assert!(empty.starts_with("there is no file in the directory "), "{empty}");
    }
}
