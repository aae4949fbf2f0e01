//! The walk from the paths of an input to the files that are read.
//!
//! The rules are those of `grep -r`. A named path is read whatever it is, and a named symbolic link is followed. Below
//! a directory only files and directories are read, in the order of their names. Hidden names are left out there, and
//! so are symbolic links (unless they are to be followed) and anything that could block a reader: FIFOs, sockets,
//! devices. Files from a pattern or a list are subject to the last rule too, but their links are followed like named
//! ones.
//!
//! A named file is read as often as it is named, as with `cat`. A file found by a pattern or below a directory is read
//! once, however many paths lead to it. Files are told apart by device and inode number, so hard links are one file.
//! Paths left out are counted and reported.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_os::standard;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::input::encoding::Encoding;
use crate::input::left_out::{LeftOut, Tallies};
use crate::input::look::{BadFile, Entry, Look, in_proc};
use crate::input::read_ahead::ReadAhead;
use crate::input::records::Records;
use crate::input::source::{Source, TaskMemory};
use crate::input::spool;
use crate::memory::Memory;

/// The origin of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The user named it, or standard input.
    Named,
    /// A list contains it.
    Listed,
    /// A pattern matched it.
    Matched,
    /// It was found below a directory.
    Below,
}

impl Way {
    fn is_named(self) -> bool {
        matches!(self, Way::Named | Way::Listed)
    }
}

/// The files found so far.
pub(crate) struct Walk<'l> {
    look: &'l Look,
    pub sources: Vec<Source>,
    pub kept: Vec<Arc<File>>,
    pub bad: Vec<BadFile>,
    pub left_out: Tallies,
    /// The tag of the files that are found next, if any.
    tag: Option<u32>,
    /// The format of their records, if it is not that of the job.
    records: Option<Records>,
    /// The encoding of their text, if they are read as text.
    text: Option<Encoding>,
    /// Device and inode numbers of the files that were named.
    named: HashSet<(u64, u64)>,
    /// Device and inode numbers of the files and directories that were found.
    found: HashSet<(u64, u64)>,
    /// Device and inode numbers of the streams, which give their bytes once.
    streams: HashSet<(u64, u64)>,
    /// For each device that was met, whether its files have other sizes than they say.
    invents_sizes: HashMap<u64, bool>,
    /// The identities of the directories that the walk is in.
    inside: Vec<(u64, u64)>,
    /// The memory of the job.
    memory: Memory,
    /// The part of `memory` that the list of files takes.
    list_bytes: u64,
}

impl<'l> Walk<'l> {
    pub fn new(look: &'l Look) -> Walk<'l> {
        let (left_out, named, found) = (Tallies::default(), HashSet::new(), HashSet::new());
        Walk {
            look,
            sources: Vec::new(),
            kept: Vec::new(),
            bad: Vec::new(),
            left_out,
            tag: None,
            records: None,
            text: None,
            named,
            found,
            streams: HashSet::new(),
            invents_sizes: HashMap::new(),
            inside: Vec::new(),
            memory: look.memory(),
            list_bytes: 0,
        }
    }

    /// Begins paths that were named together. What was found for others may be found again.
    pub fn begin_group(&mut self, tag: Option<u32>, records: Option<Records>, text: Option<Encoding>) {
        (self.tag, self.records, self.text) = (tag, records, text);
        self.named.clear();
        self.found.clear();
    }

    /// Adds a file to the list.
    pub fn add_source(&mut self, source: Source) -> Result<()> {
        let source = source.tagged(self.tag, self.records);
        self.list_bytes += source.list_bytes();
        self.memory.share(4).allow(self.list_bytes).map_err(|too_large| {
            Error::Setting(format!("the list of the input's files, {} so far, {too_large}", self.sources.len()))
        })?;
        self.sources.push(source.with_memory(TaskMemory::before_the_job(self.memory)));
        Ok(())
    }

    pub fn add(&mut self, entry: &Entry) -> Result<()> {
        match entry {
            Entry::Named(path) if path.as_os_str() == "-" => self.add_standard_input(),
            Entry::Named(path) => self.add_path(path, Way::Named),
            Entry::Listed(path) => self.add_path(path, Way::Listed),
            Entry::Matched(path) => self.add_path(path, Way::Matched),
        }
    }

    fn add_path(&mut self, path: &Path, way: Way) -> Result<()> {
        let added = self.try_path(path, way);
        added.or_else(|error| self.look.set_aside(path, error, &mut self.bad))
    }

    fn try_path(&mut self, path: &Path, way: Way) -> Result<()> {
        let failed = |source| Error::Input { path: path.to_owned(), source };
        let facts = fs::metadata(path).map_err(|error| failed(explained(path, error, way)))?;
        let is_special = !facts.is_file() && !facts.is_dir();
        // A FIFO may wait for its writer without end.
        if is_special && way != Way::Named {
            self.left_out.add(LeftOut::Special, path);
            return Ok(());
        }
        refuse_device(&facts).map_err(failed)?;
        let identity = identity(&facts);
        if is_special {
            self.refuse_again(&facts).map_err(failed)?;
        }
        if facts.is_dir() && self.inside.contains(&identity) {
            self.left_out.add(LeftOut::Loop, path);
            return Ok(());
        }
        if self.found.contains(&identity) || !way.is_named() && self.named.contains(&identity) {
            self.left_out.add(LeftOut::Again, path);
            return Ok(());
        }
        if facts.is_dir() {
            self.found.insert(identity);
            return self.add_directory(path, identity, way);
        }
        // A file of /proc may block its readers as a FIFO does.
        let is_fifo = facts.file_type().is_fifo();
        let flags = if way == Way::Named && !is_fifo { OFlags::empty() } else { OFlags::NONBLOCK };
        let mut file = File::options().read(true).custom_flags(flags.bits() as i32).open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if is_fifo {
            // Opened at once; the first read waits for its writer, as long as the job may wait.
            rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
        }
        refuse_device(&facts).map_err(failed)?;
        // A file of size 0 may still have content, as those of /proc do.
        let invents = facts.is_file() && facts.len() > 0 && self.invents_sizes(&file, &facts);
        let is_empty = || -> io::Result<bool> { Ok(facts.len() == 0 && file.read(&mut [0])? == 0) };
        let is_stream = !facts.is_file()
            || invents
            || facts.len() == 0
                && match { is_empty }() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.left_out.add(LeftOut::Special, path);
                        return Ok(());
                    }
                    is_empty => !is_empty.map_err(failed)?,
                };
        if is_stream {
            if facts.is_file() {
                file.rewind().map_err(failed)?;
            }
            self.add_stream(path.to_owned(), file)?;
        } else {
            let mut source = Source::recognised(path.to_owned(), path.to_owned(), facts.len(), &file, self.text)?;
            source.is_below = way == Way::Below;
            self.add_source(source)?;
        }
        if way.is_named() { &mut self.named } else { &mut self.found }.insert(identity);
        Ok(())
    }

    /// Adds the files of a directory, whose identity is `inside`.
    fn add_directory(&mut self, directory: &Path, inside: (u64, u64), way: Way) -> Result<()> {
        let failed = |source| Error::Input { path: directory.to_owned(), source };
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<fs::DirEntry>>>);
        let mut entries = entries.map_err(failed)?;
        entries.sort_by_cached_key(fs::DirEntry::file_name);
        let before = (self.sources.len(), self.bad.len());
        self.inside.push(inside);
        let added = ReadAhead::new(&entries).try_for_each(|entry| self.add_entry(entry));
        self.inside.pop();
        added?;
        // A directory that was not found but named must contain a file, unless all of its files were read before.
        if way != Way::Below && before == (self.sources.len(), self.bad.len()) && !self.left_out.has(LeftOut::Again) {
            let but = self.left_out.sentence();
            let but = if but.is_empty() { but } else { format!(": {but}") };
            return Err(Error::NoInput {
                what: format!("there is no file in the directory {}{but}", directory.display()),
            });
        }
        Ok(())
    }

    fn add_entry(&mut self, entry: &fs::DirEntry) -> Result<()> {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            self.left_out.add(LeftOut::Hidden, &path);
        } else if !self.look.follow && entry.file_type().is_ok_and(|kind: FileType| kind.is_symlink()) {
            self.left_out.add(LeftOut::Link, &path);
        } else {
            return self.add_path(&path, Way::Below);
        }
        Ok(())
    }

    /// Adds standard input: in place if it is a file that has not been read from, as a copy otherwise.
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
        if !file.is_terminal() {
            refuse_device(&facts).map_err(failed)?;
        }
        // Another process may have read part of it, or it may have been opened by another user.
        let path = in_proc(&file);
        if facts.is_file()
            && facts.len() > 0
            && file.stream_position().is_ok_and(|at| at == 0)
            && File::open(&path).is_ok()
        {
            self.named.insert(identity(&facts));
            self.add_source(Source::recognised(name, path, facts.len(), &file, self.text)?)?;
            self.kept.push(file.into());
            return Ok(());
        }
        self.refuse_again(&facts).map_err(failed)?;
        self.add_stream(name, file)
    }

    /// Fails if a stream was named before: its bytes can be read once.
    fn refuse_again(&mut self, facts: &Metadata) -> io::Result<()> {
        if is_null(facts) || self.streams.insert(identity(facts)) {
            return Ok(());
        }
        let why = "it is a stream, whose bytes can be read once, and was named before: write it to a file, and name that twice";
        Err(io::Error::other(why))
    }

    /// Returns whether a file has another size than it says, as those of sysfs, which say 4096 bytes, and of proc.
    fn invents_sizes(&mut self, file: &File, facts: &Metadata) -> bool {
        const PROC_AND_SYSFS: [u64; 2] = [0x9fa0, 0x6265_6572];
        let of_device =
            || rustix::fs::fstatfs(file).is_ok_and(|system| PROC_AND_SYSFS.contains(&(system.f_type as u64)));
        *self.invents_sizes.entry(facts.dev()).or_insert_with(of_device)
    }

    /// Copies a stream, unless it is to be read only once.
    fn add_stream(&mut self, name: PathBuf, mut stream: File) -> Result<()> {
        // Setting bad files aside requires reading everything twice.
        if self.look.read_once && self.look.skip_bad_files == 0 {
            return self.add_source(Source::stream(name, stream, self.text, &self.look.interrupt)?);
        }
        let (file, bytes) = spool::copy(&mut stream, &name, self.look)?;
        self.add_source(Source::recognised(name, in_proc(&file), bytes, &file, self.text)?)?;
        self.kept.push(file.into());
        Ok(())
    }
}

/// Explains why a path leads nowhere, if it is a symbolic link.
fn explained(path: &Path, error: io::Error, way: Way) -> io::Error {
    let Some(target) =
        Some(&error).filter(|error| error.kind() == io::ErrorKind::NotFound).and_then(|_| fs::read_link(path).ok())
    else {
        return error;
    };
    let next = match way {
        Way::Below => "Remove it, leave out Input::follow, or set such files aside with Input::skip_bad_files",
        Way::Named => "Make that file, or name another",
        Way::Listed | Way::Matched => {
            "Make that file, remove the link, or set such files aside with Input::skip_bad_files"
        }
    };
    let why = format!("it is a symbolic link to {}, which does not exist. {next}", target.display());
    // Another kind than the error's, because the name is right.
    io::Error::other(why)
}

/// Returns whether this is /dev/null, which is always empty.
fn is_null(facts: &Metadata) -> bool {
    facts.file_type().is_char_device() && facts.rdev() == rustix::fs::makedev(1, 3)
}

/// Fails if this is a device other than /dev/null: most devices never end, and opening some has effects.
fn refuse_device(facts: &Metadata) -> io::Result<()> {
    let kind = facts.file_type();
    if !kind.is_block_device() && !kind.is_char_device() || is_null(facts) {
        return Ok(());
    }
    let why = "it is a device, and may never end. Let head or dd read as much of it as you want, and pipe that here";
    Err(io::Error::other(why))
}

/// Returns the identity of a file: paths with the same identity lead to the same file.
fn identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}
