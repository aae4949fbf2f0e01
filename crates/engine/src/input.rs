//! What a job reads: files, directories, patterns, pipes.
//!
//! Everything becomes a list of [`Source`]s of known size before the first worker starts. What has no size
//! (a pipe, standard input) is first copied to an unnamed temporary file, because a task that is tried
//! again must read the same bytes again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_os::standard;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use crate::error::{Asked, Error, Result};
use crate::quotes::{self, State};
use crate::records::Records;
use crate::settings::Settings;
use crate::source::Source;

/// The input of a job.
#[derive(Clone, Debug)]
pub struct Input {
    paths: Vec<PathBuf>,
    /// What the paths lead to, when somebody has looked already.
    opened: Option<Arc<Opened>>,
}

/// The sources of a job, and the files without a name that must stay open as long as it runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub sources: Arc<[Source]>,
    kept: Vec<File>,
}

impl Input {
    /// Files, directories (every file below them, hidden ones left out, in the order of their names), and
    /// `-` for standard input.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Input {
        Input { paths: paths.into_iter().map(|path| path.as_ref().to_owned()).collect(), opened: None }
    }

    /// Bytes that the program made itself. They are kept in memory, and may be read by many jobs.
    ///
    /// # Errors
    /// [`Error::System`] when the system has no memory for them.
    pub fn bytes(name: impl Into<PathBuf>, bytes: &[u8]) -> Result<Input> {
        const WHAT: &str = "keeping the input of a job in memory";
        let mut file: File = memfd_create(c"gristmill input", MemfdFlags::CLOEXEC).asked(WHAT)?.into();
        file.write_all(bytes).asked(WHAT)?;
        let source = Source::plain(name.into(), in_proc(&file), bytes.len() as u64);
        let opened = Opened { sources: [source].into(), kept: vec![file] };
        Ok(Input { paths: Vec::new(), opened: Some(Arc::new(opened)) })
    }

    /// The files that the paths lead to: a program that must know a header, or a size, looks here before its job runs.
    /// They are looked for once; what cannot be read twice is copied now.
    ///
    /// # Errors
    /// As a job that reads this input: a path that leads nowhere, an empty directory.
    pub fn sources(&mut self) -> Result<&[Source]> {
        let opened = self.open()?;
        Ok(&self.opened.insert(opened).sources)
    }

    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        if let Some(opened) = &self.opened {
            return Ok(opened.clone());
        }
        if self.paths.is_empty() {
            return Err(Error::NoInput {
                what: "no input was named: give files, directories, or - for standard input".into(),
            });
        }
        let mut found = Found { sources: Vec::new(), kept: Vec::new() };
        for path in &self.paths {
            if path.as_os_str() == "-" {
                found.add_standard_input()?;
            } else {
                found.add(path)?;
            }
        }
        Ok(Arc::new(Opened { sources: found.sources.into(), kept: found.kept }))
    }
}

impl Opened {
    /// True when some of it was copied from a stream, or made by the program: the next run of the job cannot read it.
    pub fn is_spooled(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The states of CSV before all places where a job with these settings and splits of `split_bytes` cuts a file;
    /// nothing for other records.
    pub fn quotes(&self, settings: &Settings, split_bytes: u64) -> Result<HashMap<(usize, u64), State>> {
        let Records::Csv(delimiter) = settings.records else { return Ok(HashMap::new()) };
        let is_cut = |source: &Source| source.compression().is_none() && source.bytes > split_bytes;
        if !self.sources.iter().any(is_cut) {
            return Ok(HashMap::new());
        }
        // The others keep their numbers, and have nothing to read.
        let bytes = |source: &Source| if is_cut(source) { source.bytes } else { 0 };
        let sources = self.sources.iter();
        let sources = sources.map(|source| Source::plain(source.name.clone(), source.path.clone(), bytes(source)));
        let opened = Opened { sources: sources.collect(), kept: Vec::new() };
        let input = Input { paths: Vec::new(), opened: Some(Arc::new(opened)) };
        quotes::states(input, settings, split_bytes, delimiter)
    }
}

/// What the paths have led to so far.
struct Found {
    sources: Vec<Source>,
    kept: Vec<File>,
}

impl Found {
    fn add(&mut self, path: &Path) -> Result<()> {
        let failed = |source| Error::Input { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.is_dir() {
            let before = self.sources.len();
            self.add_directory(path)?;
            if self.sources.len() == before {
                return Err(Error::NoInput { what: format!("there is no file in the directory {}", path.display()) });
            }
            return Ok(());
        }
        // A file that says it is empty may still have something to read: those of /proc do.
        if facts.is_file() && (facts.len() > 0 || file.read(&mut [0]).map_err(failed)? == 0) {
            self.sources.push(Source::recognised(path.to_owned(), path.to_owned(), facts.len(), &file)?);
            return Ok(());
        }
        if facts.is_file() {
            file.rewind().map_err(failed)?;
        }
        self.add_stream(path.to_owned(), &mut file)
    }

    /// Standard input: read in place when it is a file from its beginning, else copied.
    fn add_standard_input(&mut self) -> Result<()> {
        let name = PathBuf::from("standard input");
        let failed = |source| Error::Input { path: name.clone(), source };
        if standard::was_closed(0) {
            return Err(failed(Errno::BADF.into()));
        }
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
        let facts = file.metadata().map_err(failed)?;
        if facts.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // Another process may have read a part of it; and it may have been opened by somebody else.
        let path = in_proc(&file);
        if facts.is_file()
            && facts.len() > 0
            && file.stream_position().is_ok_and(|at| at == 0)
            && File::open(&path).is_ok()
        {
            self.sources.push(Source::recognised(name, path, facts.len(), &file)?);
            self.kept.push(file);
            return Ok(());
        }
        self.add_stream(name, &mut file)
    }

    fn add_directory(&mut self, directory: &Path) -> Result<()> {
        let failed = |source| Error::Input { path: directory.to_owned(), source };
        let mut entries: Vec<fs::DirEntry> =
            fs::read_dir(directory).and_then(Iterator::collect::<io::Result<_>>).map_err(failed)?;
        entries.sort_by_cached_key(fs::DirEntry::file_name);
        for entry in entries {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // What is listed as a link, or as nothing in particular, is looked at.
            let is_directory = match entry.file_type() {
                Ok(kind) if kind.is_dir() || kind.is_file() => kind.is_dir(),
                _ => fs::metadata(&path).map_err(|source| Error::Input { path: path.clone(), source })?.is_dir(),
            };
            if is_directory {
                self.add_directory(&path)?;
            } else {
                self.add(&path)?;
            }
        }
        Ok(())
    }

    /// Copies a stream to an unnamed file, which vanishes with this process however it ends.
    fn add_stream(&mut self, name: PathBuf, stream: &mut impl io::Read) -> Result<()> {
        let spooling = |source| Error::System {
            what: "copying piped input to a temporary file (TMPDIR says in which directory)",
            source,
        };
        let mut file = tempfile::tempfile().map_err(spooling)?;
        let bytes = io::copy(stream, &mut file).map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => spooling(source),
            _ => Error::Input { path: name.clone(), source },
        })?;
        self.sources.push(Source::recognised(name, in_proc(&file), bytes, &file)?);
        self.kept.push(file);
        Ok(())
    }
}

/// A path by which the workers can open what this process has open.
fn in_proc(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
