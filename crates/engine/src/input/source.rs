//! A file of the input, and its content, decompressed and decoded to UTF-8 as it is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::input::compression::{Compression, MAGIC_BYTES};
use crate::input::decoder::decoder_bytes_max;
use crate::input::encoding::Encoding;
use crate::input::packing::{Content, OnePassStream, Packing, uncut};
use crate::input::quotes::MARK;
use crate::input::records::{LineCount, Records};
use crate::input::seek_points::{self, Cut, UNKNOWN_BYTES};
use crate::input::unread::{self, START_BYTES};
use crate::input::zip;
use crate::interrupt::Interrupt;
use crate::memory::Memory;

/// A file of the input.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in messages.
    pub name: PathBuf,
    /// The path to open.
    pub path: PathBuf,
    /// Its stored size in bytes when the job was planned.
    pub bytes: u64,
    /// Whether it was found below a directory.
    pub(crate) is_below: bool,
    /// The number by which the map function tells inputs apart.
    tag: u32,
    /// The format of its records, if it is not that of the job.
    records: Option<Records>,
    /// The types of its pairs, if it is the result of another job.
    pairs: Option<&'static str>,
    /// The encoding of text without a mark; `None` if the bytes are not read as text.
    text: Option<Encoding>,
    memory: TaskMemory,
    packing: Option<Packing>,
}

/// The memory that a reader of a file may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskMemory {
    /// For decoding it.
    pub decoder: Memory,
    /// For data made from it.
    pub unpack: Memory,
}

impl TaskMemory {
    /// Returns the limits for the process that prepares a job with this memory, which holds other data too.
    pub fn before_the_job(job: Memory) -> TaskMemory {
        TaskMemory { decoder: job.share(4), unpack: job.share(4) }
    }
}

/// The limits until the input or the plan sets them.
const UNLIMITED: TaskMemory = TaskMemory { decoder: Memory::of(u64::MAX), unpack: Memory::of(u64::MAX) };

/// Further data kept about a file, such as its identity and its parts.
const LISTED_BYTES: usize = 128;

/// The size that a stream is assumed to have when a job is planned: enough for all workers.
const STREAM_BYTES: u64 = 1 << 30;

impl Source {
    /// Makes the source of a file that is read as it is.
    pub(crate) fn plain(name: PathBuf, path: PathBuf, bytes: u64) -> Source {
        Source {
            name,
            path,
            bytes,
            is_below: false,
            tag: 0,
            records: None,
            pairs: None,
            text: None,
            memory: UNLIMITED,
            packing: None,
        }
    }

    /// Makes the source of a file that is open; its first bytes decide whether it is compressed and, if it is read as
    /// text, which encoding it has.
    ///
    /// # Errors
    /// The file cannot be read, its name claims a compression that its bytes deny, or it is read as text and is none.
    pub(crate) fn recognised(
        name: PathBuf,
        path: PathBuf,
        bytes: u64,
        file: &File,
        text: Option<Encoding>,
    ) -> Result<Source> {
        let failed = |source| Error::Input { path: name.clone(), source };
        let mut start = [0; START_BYTES];
        let start = read_start(&name, file, &mut start)?;
        let packing = match Compression::recognise(&name, start) {
            Err(why) => {
                let why = unread::refuse(&name, None, start).err().unwrap_or(why);
                return Err(Error::Compressed { path: name, offset: 0, why });
            }
            Ok(None) => None,
            Ok(Some(Compression::Zip)) => match zip::only_entry(file, bytes) {
                Ok(entry) => {
                    let cuts =
                        [(entry.start, 0), (entry.end, UNKNOWN_BYTES)].map(|(stored, content)| Cut { stored, content });
                    Some(Packing { entry: Some(entry), ..Packing::new(Some(Compression::Zip), cuts.into()) })
                }
                // Records that are no text may begin like an archive, if the name does not say that they are one.
                Err(_) if text.is_none() && Compression::of_name(&name) != Some(Compression::Zip) => None,
                Err(error) if error.raw_os_error().is_some() => return Err(failed(error)),
                Err(error) => return Err(Error::Compressed { path: name, offset: 0, why: error.to_string() }),
            },
            Ok(Some(compression)) => {
                let cuts = seek_points::find(file, compression, bytes).map_err(failed)?;
                let cuts = cuts.map_or_else(|| uncut(bytes), Arc::from);
                Some(Packing::new(Some(compression), cuts))
            }
        };
        let source = Source { packing, ..Source::plain(name, path, bytes) };
        match text {
            Some(encoding) => source.begins_as_text(encoding, start),
            None => Ok(source),
        }
    }

    /// Makes the source of a stream that a single task reads directly.
    ///
    /// # Errors
    /// As for a file, and an interrupt that comes before its first bytes.
    pub(crate) fn stream(name: PathBuf, file: File, text: Option<Encoding>, interrupt: &Interrupt) -> Result<Source> {
        let mut head = Vec::new();
        while head.len() < MAGIC_BYTES {
            interrupt.wait_for(file.as_fd())?;
            let mut piece = [0; MAGIC_BYTES];
            let left = MAGIC_BYTES - head.len();
            match (&file).read(&mut piece[..left]) {
                Ok(0) => break,
                Ok(read) => head.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Input { path: name, source }),
            }
        }
        let compression = Compression::recognise(&name, &head).map_err(|why| Error::Compressed {
            path: name.clone(),
            offset: 0,
            why,
        })?;
        if compression == Some(Compression::Zip) {
            let why = "it is a zip archive, which is read from its end: leave out Input::read_once".to_owned();
            return Err(Error::Compressed { path: name, offset: 0, why });
        }
        let stream = OnePassStream::new(file, head);
        let packing = Some(Packing { stream: Some(stream.into()), ..Packing::new(compression, uncut(0)) });
        Ok(Source { text, packing, ..Source::plain(name.clone(), name, STREAM_BYTES) })
    }

    /// Takes the content of a file that was found before for text.
    ///
    /// # Errors
    /// The file cannot be read, or is no text in an encoding that is read.
    pub(crate) fn read_as_text(self, encoding: Encoding) -> Result<Source> {
        let mut start = [0; START_BYTES];
        if !self.is_plain() {
            return self.begins_as_text(encoding, &[]);
        }
        let file = self.open_file().map_err(|source| Error::Input { path: self.name.clone(), source })?;
        let start = read_start(&self.name, &file, &mut start)?;
        self.begins_as_text(encoding, start)
    }

    /// Takes the content for text. A plain file begins with `start`.
    fn begins_as_text(mut self, encoding: Encoding, start: &[u8]) -> Result<Source> {
        let (mut unpacked, mut outer) = (Vec::new(), None);
        let start = match &self.packing {
            _ if matches!(self.records, Some(Records::Prefixed)) => return Ok(self),
            None => start,
            // It is decoded in one piece, so its reader can decide.
            Some(_) if self.content_bytes() == UNKNOWN_BYTES => {
                self.text = Some(encoding);
                return Ok(self);
            }
            Some(packing) => {
                outer = packing.compression;
                // If that fails, its reader will say why.
                let _ = self.open().and_then(|content| content.take(START_BYTES as u64).read_to_end(&mut unpacked));
                &unpacked
            }
        };
        let text = unread::refuse(&self.name, outer, start).and_then(|()| encoding.recognise(start));
        let failed = |why| Error::Compressed { path: self.name.clone(), offset: 0, why };
        if text.map_err(failed)?.is_some() {
            self.packing = Some(Packing::new(outer, uncut(self.bytes)));
        }
        self.text = Some(encoding);
        Ok(self)
    }

    /// Makes a source of records that this program wrote, each with its length in front ([`Records::Prefixed`]). `cuts`
    /// are offsets of records, with the end of the file.
    pub(crate) fn prefixed(name: PathBuf, path: PathBuf, cuts: &[u64]) -> Source {
        let bytes = cuts.last().copied().unwrap_or(0);
        let cuts = [0].iter().chain(cuts).map(|at| Cut { stored: *at, content: *at }).collect();
        let packing = Some(Packing::new(None, cuts));
        Source { records: Some(Records::Prefixed), packing, ..Source::plain(name, path, bytes) }
    }

    /// Sets the tag, and the format of records, where they are given.
    pub(crate) fn tagged(self, tag: Option<u32>, records: Option<Records>) -> Source {
        // Records that this program wrote have one format only.
        let records =
            if matches!(self.records, Some(Records::Prefixed)) { self.records } else { records.or(self.records) };
        Source { tag: tag.unwrap_or(self.tag), records, ..self }
    }

    /// Notes that its records are pairs of these types.
    pub(crate) fn with_pairs(self, types: &'static str) -> Source {
        Source { pairs: Some(types), ..self }
    }

    /// Returns the types of its pairs, if its records are pairs.
    pub(crate) fn pairs(&self) -> Option<&'static str> {
        self.pairs
    }

    /// Returns the number that its input was given ([`Input::tagged`](crate::Input::tagged)); 0 if none was.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the format of its records; `of_the_job`, if it has none of its own.
    pub(crate) fn records_or(&self, of_the_job: Records) -> Records {
        self.records.unwrap_or(of_the_job)
    }

    pub(crate) fn with_memory(self, memory: TaskMemory) -> Source {
        Source { memory, ..self }
    }

    /// Returns the memory for what a map function makes of this file beyond its chunks, if the function declares that
    /// it needs some ([`MapReduce::UNPACKS`](crate::MapReduce::UNPACKS)). Before the job, returns the memory for a
    /// program that inspects a file.
    pub fn memory(&self) -> Memory {
        self.memory.unpack
    }

    /// Returns its approximate size in a list of files and in the plan.
    pub(crate) fn list_bytes(&self) -> u64 {
        let names = self.name.as_os_str().len() + self.path.as_os_str().len();
        let cuts = self.cuts().map_or(0, size_of_val);
        (2 * (size_of::<Source>() + names) + cuts + LISTED_BYTES) as u64
    }

    /// Returns the most memory that decoding it takes; 0 if it takes next to none.
    pub(crate) fn decoder_bytes_max(&self) -> usize {
        self.compression().map_or(0, decoder_bytes_max)
    }

    /// Returns the encoding of its text without a mark; `None` if it is not read as text
    /// ([`Input::encoding`](crate::Input::encoding)).
    ///
    /// ```
    /// # use gristmill::{Encoding, Input};
    /// let mut input = Input::bytes("words", b"pond")?.encoding(Encoding::BYTES);
    /// assert_eq!(input.sources()?[0].encoding(), Some(Encoding::BYTES));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn encoding(&self) -> Option<Encoding> {
        self.text
    }

    /// Returns its compression; `None` if it is not compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.packing.as_ref().and_then(|packing| packing.compression)
    }

    /// Returns whether its content differs from the stored bytes, because it is compressed or in another encoding.
    pub(crate) fn is_decoded(&self) -> bool {
        self.compression().is_some() || !self.is_stream() && self.content_bytes() == UNKNOWN_BYTES
    }

    /// Returns the length of the byte order mark of UTF-8 with which content that begins with `start` begins, if it is
    /// read as text. The mark belongs to no record.
    pub(crate) fn mark_bytes(&self, start: &[u8]) -> usize {
        let is_text = self.text.is_some_and(|text| !text.is_bytes());
        if is_text && start.starts_with(MARK) { MARK.len() } else { 0 }
    }

    /// Returns whether its content is stored as it is, and can be read from an arbitrary byte.
    pub(crate) fn is_plain(&self) -> bool {
        self.packing.is_none()
    }

    /// Returns whether it is a stream that is read directly, and only once.
    pub fn is_stream(&self) -> bool {
        self.packing.as_ref().is_some_and(|packing| packing.stream.is_some())
    }

    /// Opens its content, decompressed, at the beginning. Text in another encoding is decoded
    /// ([`Input::encoding`](crate::Input::encoding)); a mark of UTF-8 stays before it.
    ///
    /// # Errors
    /// The file cannot be opened. While it is read, damage is an error of the kind
    /// [`InvalidData`](io::ErrorKind::InvalidData) that describes it, and a need for more memory than allowed is an
    /// error of the kind [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    pub fn open(&self) -> io::Result<Box<dyn Read>> {
        match self.unpacked_from(0)? {
            Some(content) => Ok(Box::new(content)),
            None => Ok(Box::new(self.open_file()?)),
        }
    }

    /// Opens its content as [`Source::open`] does, without a mark of UTF-8 before it if it is read as text.
    ///
    /// # Errors
    /// As for [`Source::open`].
    pub fn open_text(&self) -> io::Result<Box<dyn Read>> {
        let (mut content, mut start) = (self.open()?, Vec::new());
        content.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
        let mark = self.mark_bytes(&start);
        Ok(Box::new(io::Cursor::new(start.split_off(mark)).chain(content)))
    }

    /// Opens the stored file. It may have been replaced since it was found, for example with a FIFO, which would block
    /// a reader.
    ///
    /// # Errors
    /// Those of the system; and if it is no longer a file.
    pub(crate) fn open_file(&self) -> io::Result<File> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::options().read(true).custom_flags(flags.bits() as i32).open(&self.path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it was a file when the job began, and is none any more")),
        }
    }

    /// Returns the line, from 1, of this byte of the content, where lines end as in `records`; `None` if the source
    /// cannot be read again.
    pub(crate) fn line(&self, offset: u64, records: Records) -> Option<u64> {
        let mut before = self.open().ok()?.take(offset);
        let (mut buffer, mut lines) = (vec![0; 64 << 10], LineCount::new(records));
        loop {
            match before.read(&mut buffer).ok()? {
                0 => return Some(lines.line),
                read => lines.add(&buffer[..read]),
            }
        }
    }

    /// Returns the size of its content, or [`UNKNOWN_BYTES`].
    pub(crate) fn content_bytes(&self) -> u64 {
        self.cuts().and_then(|cuts| cuts.last()).map_or(self.bytes, |end| end.content)
    }

    /// Returns the places where it can be cut, if it is compressed.
    pub(crate) fn cuts(&self) -> Option<&[Cut]> {
        self.packing.as_ref().map(|packing| &packing.cuts[..])
    }

    /// Returns the content of a compressed file from byte `at` on; `None` if it is not compressed.
    pub(crate) fn unpacked_from(&self, at: u64) -> io::Result<Option<Content>> {
        let Some(packing) = &self.packing else { return Ok(None) };
        let file = match &packing.stream {
            None => Arc::new(self.open_file()?),
            Some(stream) => stream.take(at)?,
        };
        let text = self.text.filter(|_| self.content_bytes() == UNKNOWN_BYTES);
        Content::from(at, packing.clone(), file, text, self.memory.decoder).map(Some)
    }
}

/// Reads the first bytes of a file into `start`, and returns them.
fn read_start<'s>(name: &Path, file: &File, start: &'s mut [u8; START_BYTES]) -> Result<&'s [u8]> {
    let mut found = 0;
    match (seek_points::read_on(file, start, 0, &mut found), found) {
        (Ok(()), _) => Ok(&start[..found]),
        (Err(source), 0) => Err(Error::Input { path: name.to_owned(), source }),
        (Err(source), _) => Err(Error::Read { path: name.to_owned(), offset: found as u64, source }),
    }
}
