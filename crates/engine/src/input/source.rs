//! One file of the input, and its content, decompressed as it is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::input::compression::{Compression, MAGIC_BYTES};
use crate::input::decoder::{Decoder, Stored, decoder_bytes_max};
use crate::input::seek_points::{self, Cut, UNKNOWN_BYTES};
use crate::memory::Memory;

/// One file of the input.
#[derive(Clone, Debug)]
pub struct Source {
    /// What messages call it.
    pub name: PathBuf,
    /// What to open.
    pub path: PathBuf,
    /// Its size in bytes, as it is stored, when the job was planned.
    pub bytes: u64,
    /// It was found below a directory.
    pub(crate) is_below: bool,
    memory: TaskMemory,
    packing: Option<Packing>,
}

/// What somebody who reads a file may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskMemory {
    /// To decode it.
    pub decoder: Memory,
    /// For what is made of it.
    pub unpack: Memory,
}

impl TaskMemory {
    /// For the process that prepares a job which may take so much: other things are in its memory, too.
    pub fn before_the_job(job: Memory) -> TaskMemory {
        TaskMemory { decoder: job.share(4), unpack: job.share(4) }
    }
}

/// How a file is packed whose content cannot be read from any byte on: it is compressed, or a stream.
#[derive(Clone, Debug)]
struct Packing {
    compression: Option<Compression>,
    /// Where it can be cut, its beginning and its end among them.
    cuts: Arc<[Cut]>,
    stream: Option<Arc<Stream>>,
}

/// A stream that is read as it comes, once.
#[derive(Debug)]
struct Stream {
    file: Arc<File>,
    /// The first bytes, which were read to recognise it.
    head: Vec<u8>,
    is_taken: AtomicBool,
}

/// Until the input or the plan says what a source may take.
const UNLIMITED: TaskMemory = TaskMemory { decoder: Memory::of(u64::MAX), unpack: Memory::of(u64::MAX) };

/// What else is noted of a file: its identity, its parts.
const LISTED_BYTES: usize = 128;

/// How much a stream is taken to have when a job is planned: enough for all workers.
const STREAM_BYTES: u64 = 1 << 30;

impl Source {
    /// A file that is read as it is.
    pub(crate) fn plain(name: PathBuf, path: PathBuf, bytes: u64) -> Source {
        Source { name, path, bytes, is_below: false, memory: UNLIMITED, packing: None }
    }

    /// The file that is open here: its first bytes say whether it is compressed.
    ///
    /// # Errors
    /// It cannot be read, or its name claims that it is compressed and its bytes deny it.
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
        Ok(Source { name, path, bytes, is_below: false, memory: UNLIMITED, packing })
    }

    /// A stream that is read as it comes, by the one task that reads it.
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
        let stream = Stream { file: file.into(), head, is_taken: AtomicBool::new(false) };
        let packing = Some(Packing { compression, cuts, stream: Some(stream.into()) });
        Ok(Source { path: name.clone(), name, bytes: STREAM_BYTES, is_below: false, memory: UNLIMITED, packing })
    }

    pub(crate) fn with_memory(self, memory: TaskMemory) -> Source {
        Source { memory, ..self }
    }

    /// What a map function may take for what it makes of this file, beyond the pieces that it is shown, if it has said that
    /// it takes something ([`MapReduce::UNPACKS`](crate::MapReduce::UNPACKS)). Before the job, what a program may take
    /// that looks at a file.
    pub fn memory(&self) -> Memory {
        self.memory.unpack
    }

    /// What it takes in a list of files, and in the plan, about.
    pub(crate) fn list_bytes(&self) -> u64 {
        let names = self.name.as_os_str().len() + self.path.as_os_str().len();
        let cuts = self.cuts().map_or(0, size_of_val);
        (2 * (size_of::<Source>() + names) + cuts + LISTED_BYTES) as u64
    }

    /// The most that decoding it takes, 0 if that is next to nothing.
    pub(crate) fn decoder_bytes_max(&self) -> usize {
        self.compression().map_or(0, decoder_bytes_max)
    }

    /// How it is compressed; `None` if it is not.
    pub fn compression(&self) -> Option<Compression> {
        self.packing.as_ref().and_then(|packing| packing.compression)
    }

    /// Its content is what the file holds, and can be read from any byte on.
    pub(crate) fn is_plain(&self) -> bool {
        self.packing.is_none()
    }

    /// It is read as it comes, once.
    pub fn is_stream(&self) -> bool {
        self.packing.as_ref().is_some_and(|packing| packing.stream.is_some())
    }

    /// Its content from the beginning, decompressed.
    ///
    /// # Errors
    /// The file cannot be opened. What is found to be damaged while it is read is an error of the kind
    /// [`InvalidData`](io::ErrorKind::InvalidData) that says what; one of the kind [`OutOfMemory`](io::ErrorKind::OutOfMemory)
    /// says that decoding it takes more than it may.
    pub fn open(&self) -> io::Result<Box<dyn Read>> {
        match self.unpacked_from(0)? {
            Some(content) => Ok(Box::new(content)),
            None => Ok(Box::new(File::open(&self.path)?)),
        }
    }

    /// Bytes of its content, or [`UNKNOWN_BYTES`].
    pub(crate) fn content_bytes(&self) -> u64 {
        self.cuts().and_then(|cuts| cuts.last()).map_or(self.bytes, |end| end.content)
    }

    /// Where it can be cut, if it is compressed.
    pub(crate) fn cuts(&self) -> Option<&[Cut]> {
        self.packing.as_ref().map(|packing| &packing.cuts[..])
    }

    /// The content of a compressed file from byte `at` on; `None` if it is not compressed.
    pub(crate) fn unpacked_from(&self, at: u64) -> io::Result<Option<Content>> {
        let Some(packing) = &self.packing else { return Ok(None) };
        let file = match &packing.stream {
            None => Arc::new(File::open(&self.path)?),
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

/// The content of a compressed file, from some place to its end.
pub(crate) struct Content {
    packing: Packing,
    file: Arc<File>,
    memory: Memory,
    /// Decodes what lies between this cut and the next.
    decoder: Decoder,
    stretch: usize,
    /// Bytes of the content before the next to be read.
    pub at: u64,
}

impl Content {
    /// Bytes of the file up to which it has been read.
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
            // Tasks divide the content by what the cuts say of it, so it must be true.
            if end != UNKNOWN_BYTES && (read > end - self.at || read == 0 && self.at < end) {
                let what = format!("its table says that byte {end} of its content begins a frame, and it does not");
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
