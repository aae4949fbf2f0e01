//! The content of a file that cannot be read from an arbitrary byte, because it is compressed, in another encoding, or
//! a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::input::compression::Compression;
use crate::input::decoder::{Decoder, Stored};
use crate::input::encoding::Encoding;
use crate::input::seek_points::{Cut, UNKNOWN_BYTES};
use crate::input::transcoder::Transcoder;
use crate::input::unread::{self, START_BYTES};
use crate::input::zip::Entry;
use crate::memory::Memory;

/// The packing of a file that cannot be read from an arbitrary byte, because it is compressed, in another encoding, or
/// a stream.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pub compression: Option<Compression>,
    /// The places where it can be cut, including its beginning and its end.
    pub cuts: Arc<[Cut]>,
    pub stream: Option<Arc<OnePassStream>>,
    /// The only file of a zip archive.
    pub entry: Option<Entry>,
}

/// A stream that is read directly, and only once.
#[derive(Debug)]
pub(crate) struct OnePassStream {
    file: Arc<File>,
    /// The first bytes, which were read to recognise its compression.
    head: Vec<u8>,
    is_taken: AtomicBool,
}

impl OnePassStream {
    /// Makes a stream that begins with `head`, which has been read.
    pub fn new(file: File, head: Vec<u8>) -> OnePassStream {
        OnePassStream { file: file.into(), head, is_taken: AtomicBool::new(false) }
    }

    /// Returns its file to the first reader, which must begin at its start.
    pub fn take(&self, at: u64) -> io::Result<Arc<File>> {
        if at > 0 || self.is_taken.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other("it was read as it came (Input::read_once), and cannot be read again"));
        }
        Ok(self.file.clone())
    }
}

/// Returns the cuts of a file of `bytes` bytes that cannot be cut, and whose content has an unknown size.
pub(crate) fn uncut(bytes: u64) -> Arc<[Cut]> {
    [Cut { stored: 0, content: 0 }, Cut { stored: bytes, content: UNKNOWN_BYTES }].into()
}

impl Packing {
    /// A file in one or several stretches, whatever it is packed with.
    pub fn new(compression: Option<Compression>, cuts: Arc<[Cut]>) -> Packing {
        Packing { compression, cuts, stream: None, entry: None }
    }

    fn decoder(&self, file: &Arc<File>, stretch: usize, memory: Memory) -> io::Result<Decoder> {
        let stored = match &self.stream {
            None => Stored::range(file.clone(), self.cuts[stretch].stored..self.cuts[stretch + 1].stored),
            Some(stream) => Stored::stream(file.clone(), stream.head.clone()),
        };
        match self.entry {
            Some(entry) => Ok(Decoder::of_entry(stored, entry, memory)),
            None => Decoder::new(stored, self.compression, memory),
        }
    }
}

/// The content of a packed file from some byte to its end.
pub(crate) struct Content {
    packing: Packing,
    file: Arc<File>,
    memory: Memory,
    /// Decodes the stretch up to the next cut.
    decoder: Decoder,
    text: Text,
    stretch: usize,
    /// The offset in the content of the next byte to be read.
    pub at: u64,
}

/// The way from what is unpacked to what programs see.
enum Text {
    /// The first bytes decide; text without a mark has this encoding.
    Unknown(Encoding),
    /// The same, beginning with these bytes, which have been read.
    AsItIs(Vec<u8>),
    Decoded(Box<Transcoder>),
}

impl Content {
    /// Opens the content at byte `at`. Its first bytes decide how `text` is decoded.
    pub fn from(
        at: u64,
        packing: Packing,
        file: Arc<File>,
        text: Option<Encoding>,
        memory: Memory,
    ) -> io::Result<Content> {
        let stretch = packing.cuts.partition_point(|cut| cut.content <= at).clamp(1, packing.cuts.len() - 1) - 1;
        let decoder = packing.decoder(&file, stretch, memory)?;
        let text = text.map_or(Text::AsItIs(Vec::new()), Text::Unknown);
        let begin = packing.cuts[stretch].content;
        let mut content = Content { packing, file, memory, decoder, text, stretch, at: begin };
        let mut skipped = [0; 4096];
        while content.at < at {
            let wanted = skipped.len().min((at - content.at) as usize);
            if content.read(&mut skipped[..wanted])? == 0 {
                break;
            }
        }
        Ok(content)
    }

    /// Reads content.
    fn read_some(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Text::Unknown(encoding) = self.text {
            let (mut start, outer) = (Vec::new(), self.packing.compression);
            self.decoder.by_ref().take(START_BYTES as u64).read_to_end(&mut start)?;
            // Only a name could tell more, and that of a stream has no meaning.
            let text = unread::refuse(Path::new(""), outer, &start).and_then(|()| encoding.recognise(&start));
            self.text = match text.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))? {
                None => Text::AsItIs(start),
                Some(encoding) => Text::Decoded(Box::new(Transcoder::new(encoding, start))),
            };
        }
        match &mut self.text {
            Text::Decoded(transcoder) => transcoder.read(&mut self.decoder, to),
            Text::AsItIs(start) if !start.is_empty() => {
                let read = to.len().min(start.len());
                to[..read].copy_from_slice(&start[..read]);
                start.drain(..read);
                Ok(read)
            }
            _ => self.decoder.read(to),
        }
    }

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
            let read = match self.read_some(to) {
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
