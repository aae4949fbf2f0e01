//! What a job reads: files, directories, patterns, pipes.
//!
//! Everything becomes a list of [`Source`]s of known size before the first worker starts ([`crate::input::walk`]). What has no size
//! (a pipe, standard input) is first copied to an unnamed temporary file ([`crate::input::spool`]), because a task that is tried
//! again must read the same bytes again. If bad files are set aside, every file is read once to its end before the job
//! ([`crate::job::bad_files`]), so that nothing of a bad one is ever counted.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_os::file_size::LimitIsAnError;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{Asked, Error, Result};
use crate::input::left_out::Tallies;
use crate::input::look::{BadFile, Entry, InputNews, Look, News, in_proc};
use crate::input::source::Source;
use crate::input::walk::Walk;
use crate::memory::Memory;

/// The input of a job.
#[derive(Clone, Debug)]
pub struct Input {
    entries: Vec<Entry>,
    pub(crate) look: Look,
    /// What the paths lead to, when somebody has looked already.
    pub(crate) opened: Option<Arc<Opened>>,
}

/// The sources of a job, and the files without a name that must stay open as long as it runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub sources: Arc<[Source]>,
    pub kept: Arc<[File]>,
    /// Files that were set aside.
    pub bad: Vec<BadFile>,
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

    pub(crate) fn of(opened: Opened) -> Input {
        Input { entries: Vec::new(), look: Look::default(), opened: Some(Arc::new(opened)) }
    }

    /// The files that the paths lead to, as often as it is asked.
    pub(crate) fn find(&self) -> Result<Arc<Opened>> {
        let _guard = LimitIsAnError::new();
        if let Some(opened) = &self.opened {
            return Ok(opened.clone());
        }
        if self.entries.is_empty() {
            return Err(Error::NoInput {
                what: "no input was named: give files, directories, or - for standard input".into(),
            });
        }
        let mut walk = Walk::new(&self.look);
        self.entries.iter().try_for_each(|entry| walk.add(entry))?;
        let Walk { sources, kept, bad, left_out, .. } = walk;
        self.look.tell_left_out(&left_out);
        if sources.is_empty() {
            return Err(nothing_left(&left_out, &bad));
        }
        Ok(Arc::new(Opened { sources: sources.into(), kept: kept.into(), bad }))
    }
}

/// No file is left to be read.
pub(crate) fn nothing_left(left_out: &Tallies, bad: &[BadFile]) -> Error {
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
        let opened = Input::paths([dir.path()]).find().expect("opened");
        let names: Vec<_> = opened.sources.iter().map(|source| source.name.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("a"), Path::new("b/x"), Path::new("c")]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = Input::paths(["/no/such/file"]).find().expect_err("missing").to_string();
        assert!(missing.starts_with("cannot read /no/such/file: "), "{missing}");
        let dir = tempfile::tempdir().expect("a directory");
        let empty = Input::paths([dir.path()]).find().expect_err("empty").to_string();
        assert!(empty.starts_with("there is no file in the directory "), "{empty}");
    }
}
