//! The input of a job: files, directories, patterns, pipes.
//!
//! Every input becomes a list of [`Source`]s of known size before the first worker starts ([`crate::input::walk`]). A
//! pipe or standard input has no known size. It is first copied to an unnamed temporary file ([`crate::input::spool`]),
//! because a retried task must read the same bytes again. If bad files are set aside, every file is read once to its
//! end before the job ([`crate::job::bad_files`]), so that nothing of a bad file is ever counted.

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
    /// The sources, if the paths have already been searched.
    pub(crate) opened: Option<Arc<Opened>>,
}

/// The sources of a job, and the unnamed files that must stay open as long as it runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub sources: Arc<[Source]>,
    pub kept: Arc<[File]>,
    /// Files that were set aside.
    pub bad: Vec<BadFile>,
}

impl Input {
    /// Makes an input from paths: files, directories (all files below them in the order of their names, without hidden
    /// files and symbolic links), and `-` for standard input. A file that is named twice is read twice. A file found
    /// below a directory is read once, however many paths lead to it.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Input {
        let entries = paths.into_iter().map(|path| Entry::Named(path.as_ref().to_owned())).collect();
        Input { entries, look: Look::default(), opened: None }
    }

    /// Adds a path, as in [`Input::paths`].
    pub fn and(mut self, path: impl Into<PathBuf>) -> Input {
        self.entries.push(Entry::Named(path.into()));
        self
    }

    /// Adds paths from a list. FIFOs, sockets and devices among them, which could block a reader, are left out.
    pub fn and_listed(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries.extend(paths.into_iter().map(Entry::Listed));
        self
    }

    /// Adds paths that a pattern matched. As [`Input::and_listed`], but a file that matches twice is read once.
    pub fn and_matched(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries.extend(paths.into_iter().map(Entry::Matched));
        self
    }

    /// Chooses whether symbolic links below directories are followed.
    pub fn follow(mut self, follow: bool) -> Input {
        self.look.follow = follow;
        self
    }

    /// Sets aside up to `files` files that cannot be read, are not what their names say, or are damaged anywhere.
    /// Nothing of them is counted: each file is read once to its end before the job begins. One more is an error.
    pub fn skip_bad_files(mut self, files: u32) -> Input {
        self.look.skip_bad_files = files;
        self
    }

    /// Sets the memory of the whole job, as [`Job::memory`](crate::Job::memory) does, for the data made before it
    /// starts, such as the list of files. By default all available memory.
    pub fn memory(mut self, bytes: usize) -> Input {
        self.look.memory_bytes = Some(bytes);
        self
    }

    /// Returns the memory that a program may use for data that it makes from this input and keeps as long as its job
    /// runs ([`Job::holds`](crate::Job::holds)).
    pub fn program_memory(&self) -> Memory {
        self.look.memory()
    }

    /// Sets the folder for copies of streams, which can be read only once. By default the folder for temporary files.
    pub fn spool_dir(mut self, dir: impl Into<PathBuf>) -> Input {
        self.look.spool_dir = Some(dir.into());
        self
    }

    /// Sets how many bytes stay free on the file system of that folder; a longer stream ends the job. By default a tenth
    /// of the bytes that are free before the copy.
    pub fn keep_free(mut self, bytes: u64) -> Input {
        self.look.keep_free_bytes = Some(bytes);
        self
    }

    /// Chooses whether streams are read directly, each by one worker, instead of being copied to a file first. The
    /// bytes can then be read only once: a worker that dies ends the job, and no program can inspect them before it
    /// ([`Input::sources`]).
    pub fn read_once(mut self, read_once: bool) -> Input {
        self.look.read_once = read_once;
        self
    }

    /// Calls `tell` with the news of the input while its files are searched for.
    pub fn on_news(mut self, tell: impl Fn(&InputNews<'_>) + Send + Sync + 'static) -> Input {
        self.look.news = News(Some(Arc::new(tell)));
        self
    }

    /// Makes an input of bytes in memory. Many jobs may read it.
    ///
    /// # Errors
    /// [`Error::System`] if the system has no memory for them.
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

    /// Returns the sources that the paths lead to; may be called any number of times.
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

/// Returns the error that no file is left to read.
pub(crate) fn nothing_left(left_out: &Tallies, bad: &[BadFile]) -> Error {
    let aside = bad.first().map(|first| match bad.len() {
        1 => format!("1 file was set aside: {}", first.cause),
        files => format!("{files} files were set aside; the first: {}", first.cause),
    });
    let whys: Vec<_> = [left_out.sentence()].into_iter().filter(|why| !why.is_empty()).chain(aside).collect();
    Error::NoInput { what: format!("there is nothing left to read: {}", whys.join("; ")) }
}

impl Opened {
    /// Returns whether some of the input was copied from a stream or made by the program, so that the next run of the
    /// job cannot read it.
    pub fn is_spooled(&self) -> bool {
        !self.kept.is_empty() || self.has_stream()
    }

    /// Returns whether some of the input is a stream that is read only once.
    pub fn has_stream(&self) -> bool {
        self.sources.iter().any(Source::is_stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_files_of_a_directory_are_read_in_the_order_of_their_names() {
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
    fn a_missing_path_is_named_in_the_error() {
        let missing = Input::paths(["/no/such/file"]).find().expect_err("missing").to_string();
        assert!(missing.starts_with("cannot read /no/such/file: "), "{missing}");
        let dir = tempfile::tempdir().expect("a directory");
        let empty = Input::paths([dir.path()]).find().expect_err("empty").to_string();
        assert!(empty.starts_with("there is no file in the directory "), "{empty}");
    }
}
