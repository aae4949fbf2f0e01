//! One file of the input, and its content, decompressed as it is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use crate::compression::{Compression, MAGIC_BYTES};
use crate::cuts::{self, Cut};
use crate::decoder::Decoder;
use crate::error::{Error, Result};

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
    packing: Option<Packing>,
}

/// How a compressed file is packed.
#[derive(Clone, Debug)]
struct Packing {
    compression: Compression,
    /// Where it can be cut, its beginning and its end among them.
    cuts: Arc<[Cut]>,
}

/// How much content a file has when nobody can say before it is decoded.
pub(crate) const UNKNOWN_BYTES: u64 = u64::MAX;

impl Source {
    /// A file that is read as it is.
    pub(crate) fn plain(name: PathBuf, path: PathBuf, bytes: u64) -> Source {
        Source { name, path, bytes, is_below: false, packing: None }
    }

    /// The file that is open here: its first bytes say whether it is compressed.
    ///
    /// # Errors
    /// It cannot be read, or its name claims that it is compressed and its bytes deny it.
    pub(crate) fn recognised(name: PathBuf, path: PathBuf, bytes: u64, file: &File) -> Result<Source> {
        let failed = |source| Error::Input { path: name.clone(), source };
        let mut start = [0; MAGIC_BYTES];
        let found = cuts::read_up_to(file, &mut start, 0).map_err(failed)?;
        let packing = match Compression::recognise(&name, &start[..found]) {
            Err(why) => return Err(Error::Compressed { path: name, offset: 0, why }),
            Ok(None) => None,
            Ok(Some(compression)) => {
                let ends = || [Cut { stored: 0, content: 0 }, Cut { stored: bytes, content: UNKNOWN_BYTES }].into();
                let cuts = cuts::find(file, compression, bytes).map_err(failed)?.map_or_else(ends, Arc::from);
                Some(Packing { compression, cuts })
            }
        };
        Ok(Source { name, path, bytes, is_below: false, packing })
    }

    /// How it is compressed; `None` if it is not.
    pub fn compression(&self) -> Option<Compression> {
        self.packing.as_ref().map(|packing| packing.compression)
    }

    /// Its content from the beginning, decompressed.
    ///
    /// # Errors
    /// The file cannot be opened. What is found to be damaged while it is read is an error of the kind
    /// [`InvalidData`](io::ErrorKind::InvalidData) that says what.
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
        let file = Arc::new(File::open(&self.path)?);
        let stretch = packing.cuts.partition_point(|cut| cut.content <= at).clamp(1, packing.cuts.len() - 1) - 1;
        let decoder = packing.decoder(&file, stretch)?;
        let mut content =
            Content { packing: packing.clone(), file, decoder, stretch, at: packing.cuts[stretch].content };
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
    fn decoder(&self, file: &Arc<File>, stretch: usize) -> io::Result<Decoder> {
        let range = self.cuts[stretch].stored..self.cuts[stretch + 1].stored;
        Decoder::new(file.clone(), self.compression, range)
    }
}

/// The content of a compressed file, from some place to its end.
pub(crate) struct Content {
    packing: Packing,
    file: Arc<File>,
    /// Decodes what lies between this cut and the next.
    decoder: Decoder,
    stretch: usize,
    /// Bytes of the content before the next to be read.
    pub at: u64,
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
            self.decoder = self.packing.decoder(&self.file, self.stretch)?;
        }
    }
}
