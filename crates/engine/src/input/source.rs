//! A file of the input, and its content, decompressed as it is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::input::compression::{Compression, MAGIC_BYTES};
use crate::input::decoder::{Decoder, Stored, decoder_bytes_max};
use crate::input::records::Records;
use crate::input::seek_points::{self, Cut, UNKNOWN_BYTES};
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

/// The packing of a file that cannot be read from any byte on, because it is compressed or a stream.
#[derive(Clone, Debug)]
struct Packing {
    compression: Option<Compression>,
    /// The places where it can be cut, including its beginning and its end.
    cuts: Arc<[Cut]>,
    stream: Option<Arc<OnePassStream>>,
}

/// A stream that is read directly, and only once.
#[derive(Debug)]
struct OnePassStream {
    file: Arc<File>,
    /// The first bytes, which were read to recognise its compression.
    head: Vec<u8>,
    is_taken: AtomicBool,
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
            memory: UNLIMITED,
            packing: None,
        }
    }

    /// Makes the source of a file that is open; its first bytes decide whether it is compressed.
    ///
    /// # Errors
    /// The file cannot be read, or its name claims a compression that its bytes deny.
    pub(crate) fn recognised(name: PathBuf, path: PathBuf, bytes: u64, file: &File) -> Result<Source> {
        let failed = |source| Error::Input { path: name.clone(), source };
        let mut start = [0; MAGIC_BYTES];
        let found = seek_points::read_up_to(file, &mut start, 0).map_err(failed)?;
        let packing = match Compression::recognise(&name, &start[..found]) {
            Err(why) => return Err(Error::Compressed { path: name, offset: 0, why }),
            Ok(None) => None,
            Ok(Some(compression)) => {
                let ends = || [Cut { stored: 0, content: 0 }, Cut { stored: bytes, content: UNKNOWN_BYTES }].into();
                let cuts = seek_points::find(file, compression, bytes).map_err(failed)?.map_or_else(ends, Arc::from);
                Some(Packing { compression: Some(compression), cuts, stream: None })
            }
        };
        Ok(Source {
            name,
            path,
            bytes,
            is_below: false,
            tag: 0,
            records: None,
            pairs: None,
            memory: UNLIMITED,
            packing,
        })
    }

    /// Makes the source of a stream that a single task reads directly.
    ///
    /// # Errors
    /// As for a file.
    pub(crate) fn stream(name: PathBuf, file: File) -> Result<Source> {
        let failed = |source| Error::Input { path: name.clone(), source };
        let mut head = Vec::new();
        (&file).take(MAGIC_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
        let compression = Compression::recognise(&name, &head).map_err(|why| Error::Compressed {
            path: name.clone(),
            offset: 0,
            why,
        })?;
        let cuts = [Cut { stored: 0, content: 0 }, Cut { stored: 0, content: UNKNOWN_BYTES }].into();
        let stream = OnePassStream { file: file.into(), head, is_taken: AtomicBool::new(false) };
        let packing = Some(Packing { compression, cuts, stream: Some(stream.into()) });
        Ok(Source {
            path: name.clone(),
            name,
            bytes: STREAM_BYTES,
            is_below: false,
            tag: 0,
            records: None,
            pairs: None,
            memory: UNLIMITED,
            packing,
        })
    }

    /// Makes a source of records that this program wrote, each with its length in front ([`Records::Prefixed`]). `cuts`
    /// are offsets of records, with the end of the file.
    pub(crate) fn prefixed(name: PathBuf, path: PathBuf, cuts: &[u64]) -> Source {
        let bytes = cuts.last().copied().unwrap_or(0);
        let cuts = [0].iter().chain(cuts).map(|at| Cut { stored: *at, content: *at }).collect();
        let packing = Some(Packing { compression: None, cuts, stream: None });
        let records = Some(Records::Prefixed);
        Source { name, path, bytes, is_below: false, tag: 0, records, pairs: None, memory: UNLIMITED, packing }
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

    /// Returns its compression; `None` if it is not compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.packing.as_ref().and_then(|packing| packing.compression)
    }

    /// Returns whether its content is stored as it is, and can be read from any byte on.
    pub(crate) fn is_plain(&self) -> bool {
        self.packing.is_none()
    }

    /// Returns whether it is a stream that is read directly, and only once.
    pub fn is_stream(&self) -> bool {
        self.packing.as_ref().is_some_and(|packing| packing.stream.is_some())
    }

    /// Opens its content, decompressed, at the beginning.
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

    /// Opens the stored file. It may have been replaced since it was found, for example with a FIFO, which would block a
    /// reader.
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

    /// Returns the line, from 1, of this byte of the content; `None` if the source cannot be read again.
    pub(crate) fn line(&self, offset: u64) -> Option<u64> {
        let mut before = self.open().ok()?.take(offset);
        let (mut buffer, mut line) = (vec![0; 64 << 10], 1);
        loop {
            match before.read(&mut buffer).ok()? {
                0 => return Some(line),
                read => line += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64,
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
            Some(stream) if at > 0 || stream.is_taken.swap(true, Ordering::Relaxed) => {
                return Err(io::Error::other("it was read as it came (Input::read_once), and cannot be read again"));
            }
            Some(stream) => stream.file.clone(),
        };
        let stretch = packing.cuts.partition_point(|cut| cut.content <= at).clamp(1, packing.cuts.len() - 1) - 1;
        let memory = self.memory.decoder;
        let decoder = packing.decoder(&file, stretch, memory)?;
        let mut content =
            Content { packing: packing.clone(), file, memory, decoder, stretch, at: packing.cuts[stretch].content };
        let mut skipped = [0; 4096];
        while content.at < at {
            let wanted = skipped.len().min((at - content.at) as usize);
            if content.read(&mut skipped[..wanted])? == 0 {
                break;
            }
        }
        Ok(Some(content))
    }
}

impl Packing {
    fn decoder(&self, file: &Arc<File>, stretch: usize, memory: Memory) -> io::Result<Decoder> {
        let stored = match &self.stream {
            None => Stored::range(file.clone(), self.cuts[stretch].stored..self.cuts[stretch + 1].stored),
            Some(stream) => Stored::stream(file.clone(), stream.head.clone()),
        };
        Decoder::new(stored, self.compression, memory)
    }
}

/// The content of a compressed file from some byte to its end.
pub(crate) struct Content {
    packing: Packing,
    file: Arc<File>,
    memory: Memory,
    /// Decodes the stretch up to the next cut.
    decoder: Decoder,
    stretch: usize,
    /// The offset in the content of the next byte to be read.
    pub at: u64,
}

impl Content {
    /// Returns the offset up to which the file has been read.
    pub fn reached(&self) -> u64 {
        self.decoder.reached().unwrap_or(self.packing.cuts[self.stretch + 1].stored)
    }
}

impl Read for Content {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match self.decoder.read(to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read? as u64,
            };
            let end = self.packing.cuts[self.stretch + 1].content;
            // Tasks divide the content by the sizes that the cuts claim, so these must be right.
            if end != UNKNOWN_BYTES && (read > end - self.at || read == 0 && self.at < end) {
                let what = match self.stretch + 2 == self.packing.cuts.len() {
                    true => format!("its table says that its content ends at byte {end}, and it does not"),
                    false => format!("its table says that byte {end} of its content begins a frame, and it does not"),
                };
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            self.at += read;
            if read > 0 || self.stretch + 2 == self.packing.cuts.len() {
                return Ok(read as usize);
            }
            self.stretch += 1;
            self.decoder = self.packing.decoder(&self.file, self.stretch, self.memory)?;
        }
    }
}
