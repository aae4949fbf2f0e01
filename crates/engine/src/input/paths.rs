//! The input of a job: files, directories, patterns, pipes, and what the program made itself ([`crate::input::made`]).
//!
//! Every input becomes a list of [`Source`]s of known size before the first worker starts ([`crate::input::walk`]). A
//! pipe or standard input has no known size. It is first copied to an unnamed temporary file ([`crate::input::spool`]),
//! because a retried task must read the same bytes again. If bad files are set aside, every file is read once to its
//! end before the job ([`crate::job::bad_files`]), so that nothing of a bad file is ever counted.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_os::file_size::LimitIsAnError;

use crate::error::{Error, Result};
use crate::input::encoding::Encoding;
use crate::input::left_out::Tallies;
use crate::input::look::{BadFile, Entry, InputNews, Look, News};
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::walk::Walk;
use crate::memory::Memory;

/// The input of a job.
///
/// ```
/// # use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError};
/// # struct Words;
/// # impl MapReduce for Words {
/// #     type Key = Bytes;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
/// #         let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
/// #         words.for_each(|word| out.emit(word, 1));
/// #         Ok(())
/// #     }
/// # }
/// use gristmill::{Input, Isolation, Job};
///
/// # let dir = tempfile::tempdir()?;
/// # let logs = dir.path().join("logs");
/// # std::fs::create_dir(&logs)?;
/// # std::fs::write(logs.join("a.txt"), "one two\n")?;
/// # std::fs::write(logs.join("b.txt"), "two\n")?;
/// // All files below a folder, and a text in memory.
/// let input = Input::paths([&logs]).chain(Input::bytes("more", b"two three\n")?);
/// // This doctest runs beside others in one process, so its workers are threads.
/// let (counts, _) = Job::new(&Words, input).isolation(Isolation::Thread).run()?;
/// assert_eq!(counts.get(b"two"), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Input {
    groups: Vec<Group>,
    pub(crate) look: Look,
}

/// Paths that were named together. Their files have the same tag, and records of the same format.
#[derive(Clone, Debug, Default)]
struct Group {
    entries: Vec<Entry>,
    /// Sources instead of entries: made by the program, or found before.
    opened: Option<Arc<Opened>>,
    tag: Option<u32>,
    records: Option<Records>,
    /// The encoding of their text, if they are read as text.
    text: Option<Encoding>,
}

/// The sources of a job, and the unnamed files that must stay open as long as it runs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub sources: Arc<[Source]>,
    pub kept: Vec<Arc<File>>,
    /// Files that were set aside.
    pub bad: Vec<BadFile>,
}

impl Input {
    /// Makes an input from paths: files, directories (all files below them in the order of their names, without hidden
    /// files and symbolic links), and `-` for standard input. A file that is named twice is read twice. A file found
    /// below a directory is read once, however many paths lead to it.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Input {
        let entries = paths.into_iter().map(|path| Entry::Named(path.as_ref().to_owned())).collect();
        Input { groups: vec![Group { entries, ..Group::default() }], look: Look::default() }
    }

    /// Adds a path, as in [`Input::paths`].
    pub fn and(mut self, path: impl Into<PathBuf>) -> Input {
        self.entries().push(Entry::Named(path.into()));
        self
    }

    /// Adds paths from a list. FIFOs, sockets and devices among them, which could block a reader, are left out.
    pub fn and_listed(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries().extend(paths.into_iter().map(Entry::Listed));
        self
    }

    /// Adds paths that a pattern matched. As [`Input::and_listed`], but a file that matches twice is read once.
    pub fn and_matched(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Input {
        self.entries().extend(paths.into_iter().map(Entry::Matched));
        self
    }

    /// Adds another input, which keeps its tag and the format of its records. Its other settings, such as
    /// [`Input::follow`], are dropped: those of `self` hold for both.
    ///
    /// ```
    /// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Records, Chunk};
    ///
    /// /// Prices of goods, and how many of each were sold: `tea 3` in lines, and the names alone, each with a NUL.
    /// struct Sales;
    ///
    /// impl MapReduce for Sales {
    ///     type Key = String;
    ///     /// The price, and the number sold.
    ///     type Value = (u64, u64);
    ///
    ///     fn combiner(&self) -> Option<impl Fn((u64, u64), (u64, u64)) -> (u64, u64)> {
    ///         Some(|a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1))
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, (u64, u64)>) -> Result<(), ProgramError> {
    ///         for (_, record) in chunk.records() {
    ///             let record = str::from_utf8(record)?;
    ///             match (chunk.tag(), record.split_once(' ')) {
    ///                 (0, Some((what, price))) => out.emit(what, (price.parse()?, 0)),
    ///                 _ => out.emit(record, (0, 1)),
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let prices = Input::bytes("prices", b"tea 3\nsoup 7\n")?;
    /// let sales = Input::bytes("sales", b"soup\0tea\0soup\0")?.tagged(1).records(Records::EndedBy(0));
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Sales, prices.chain(sales)).isolation(Isolation::Thread);
    /// assert_eq!(job.run()?.0.get("soup"), Some((7, 2)));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn chain(mut self, other: Input) -> Input {
        self.groups.extend(other.groups);
        self
    }

    /// Tags everything named so far with a number that the map function sees ([`Chunk::tag`](crate::Chunk::tag)), to
    /// tell the sides of a join apart. The tag of an input without this call is 0.
    pub fn tagged(mut self, tag: u32) -> Input {
        self.groups.iter_mut().for_each(|group| group.tag = Some(tag));
        self
    }

    /// Chooses where the records of everything named so far end. Without this call,
    /// [`Job::records`](crate::Job::records) does.
    pub fn records(mut self, records: Records) -> Input {
        self.groups.iter_mut().for_each(|group| group.records = Some(records));
        self
    }

    /// Reads everything named so far as text. A file that begins with the mark of UTF-16 is decoded to UTF-8, and the
    /// mark of UTF-8 is taken off. A file without a mark has `encoding`; by default its bytes are taken as they are.
    /// Archives and formats that cannot be unpacked are refused. Without this call, the map function sees all bytes as
    /// they are.
    ///
    /// A file that is decoded is one task. Offsets in it ([`Chunk::offset`](crate::Chunk::offset)) are those of its
    /// UTF-8. Bytes that are no text in its encoding are an error that says where they are.
    ///
    /// ```
    /// # use gristmill::{Bytes, Chunk, Emit, Encoding, Input, Isolation, Job, MapReduce, ProgramError};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    /// #         Some(|a, b| a + b)
    /// #     }
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.lines().for_each(|line| out.emit(line, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// let wide: Vec<u8> = "\u{feff}caf\u{e9}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    /// let input = Input::bytes("wide", &wide)?.encoding(Encoding::default());
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let (counts, _) = Job::new(&Lines, input).isolation(Isolation::Thread).run()?;
    /// assert_eq!(counts.get("caf\u{e9}".as_bytes()), Some(1));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn encoding(mut self, encoding: Encoding) -> Input {
        self.groups.iter_mut().for_each(|group| group.text = Some(encoding));
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

    /// Ends the search for the files, and a wait for a pipe, with [`Error::Deadline`] once `limit` has passed since
    /// `since`. A job that reads this input ends then too, so that one deadline covers the search, the copying of
    /// pipes, and the job.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use gristmill::{Error, Input};
    ///
    /// let (reader, _writer) = std::io::pipe()?; // Nobody writes to it.
    /// let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    /// let mut input = Input::paths([path]).deadline(Duration::from_millis(50), Instant::now());
    /// assert!(matches!(input.sources(), Err(Error::Deadline { .. })));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn deadline(mut self, limit: Duration, since: Instant) -> Input {
        self.look.interrupt = self.look.interrupt.within(Some(limit), since);
        self
    }

    /// Sets the folder for copies of streams, which can be read only once. By default the folder for temporary files.
    pub fn spool_dir(mut self, dir: impl Into<PathBuf>) -> Input {
        self.look.spool_dir = Some(dir.into());
        self
    }

    /// Sets how many bytes stay free on the file system of that folder; a longer stream ends the job. By default a
    /// tenth of the bytes that are free before the copy.
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

    pub(crate) fn of(opened: Opened) -> Input {
        let group = Group { opened: Some(Arc::new(opened)), ..Group::default() };
        Input { groups: vec![group], look: Look::default() }
    }

    /// Returns the list to which paths are added.
    fn entries(&mut self) -> &mut Vec<Entry> {
        if self.groups.last().is_none_or(|last| last.opened.is_some()) {
            self.groups.push(Group::default());
        }
        &mut self.groups.last_mut().expect("just added").entries
    }

    /// Returns the sources if they need not be searched for.
    pub(crate) fn opened(&self) -> Option<&Arc<Opened>> {
        match &self.groups[..] {
            [Group { opened: Some(opened), tag: None, records: None, text: None, .. }] => Some(opened),
            _ => None,
        }
    }

    /// Remembers the sources that were found.
    pub(crate) fn set_opened(&mut self, opened: Arc<Opened>) -> &Opened {
        self.groups = vec![Group { opened: Some(opened), ..Group::default() }];
        self.groups[0].opened.as_ref().expect("just set")
    }

    /// Returns the sources that the paths lead to; may be called any number of times.
    pub(crate) fn find(&self) -> Result<Arc<Opened>> {
        let _guard = LimitIsAnError::new();
        if let Some(opened) = self.opened() {
            return Ok(opened.clone());
        }
        if self.groups.iter().all(|group| group.entries.is_empty() && group.opened.is_none()) {
            return Err(Error::NoInput {
                what: "no input was named: give files, directories, or - for standard input".into(),
            });
        }
        let mut walk = Walk::new(&self.look);
        for group in &self.groups {
            group.records.map_or(Ok(()), Records::check)?;
            walk.begin_group(group.tag, group.records, group.text);
            group.entries.iter().try_for_each(|entry| walk.add(entry))?;
            if let Some(opened) = &group.opened {
                walk.kept.extend(opened.kept.iter().cloned());
                walk.bad.extend(opened.bad.iter().cloned());
                for source in opened.sources.iter().cloned() {
                    walk.add_source(match group.text {
                        Some(encoding) => source.read_as_text(encoding)?,
                        None => source,
                    })?;
                }
            }
        }
        let Walk { sources, kept, bad, left_out, .. } = walk;
        self.look.tell_left_out(&left_out);
        if sources.is_empty() {
            return Err(nothing_left(&left_out, &bad));
        }
        Ok(Arc::new(Opened { sources: sources.into(), kept, bad }))
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
    fn a_fifo_that_is_named_twice_is_an_error() {
        // The second time it was waited for without end.
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, rustix::fs::Mode::from_raw_mode(0o600), 0).expect("made");
        let path = fifo.clone();
        let writer = std::thread::spawn(move || fs::write(path, "pond\n"));
        let twice = Input::paths([&fifo, &fifo]).find().expect_err("twice").to_string();
        assert!(twice.contains("fifo: it is a stream, whose bytes can be read once, and was named before"), "{twice}");
        writer.join().expect("no panic").expect("written");
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
