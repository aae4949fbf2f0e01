//! A sink that keeps the result of a job as the input of another: pairs in unnamed files.
//!
//! ```text
//!  a file:  | length, 4 | pair | length, 4 | pair | ... | places where it can be cut, 8 each | number of these, 8 |
//! ```

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gristmill_os::room::{TemporaryFolder, named};

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::error::little_room;
use crate::input::look::in_proc;
use crate::input::paths::{Input, Opened};
use crate::input::source::Source;
use crate::output::sink::{Attempt, Sink, SinkWriter};
use crate::program_error::ProgramError;

/// A file can be cut into tasks at least this far apart.
const CUT_BYTES: u64 = 64 << 10;
/// Written at once.
const BUFFER_BYTES: usize = 256 << 10;
const WORD_BYTES: u64 = 8;

/// Files without names for the pairs of each part.
pub(crate) struct PairFiles<K, V> {
    folders: Vec<TemporaryFolder>,
    /// One for each part, open before the workers start. A part that is begun again is written over.
    files: OnceLock<Vec<Arc<File>>>,
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Datum> PairFiles<K, V> {
    /// Files in these folders, in turn.
    pub fn new(folders: Vec<TemporaryFolder>) -> PairFiles<K, V> {
        PairFiles { folders, files: OnceLock::new(), kind: PhantomData }
    }

    fn files(&self) -> &[Arc<File>] {
        self.files.get().expect("the job has begun")
    }

    fn folder(&self, part: usize) -> &TemporaryFolder {
        &self.folders[part % self.folders.len()]
    }

    /// Makes an input of what was written.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn into_input(self) -> io::Result<Input> {
        let name = PathBuf::from("the result of another job");
        let files = self.files();
        let source = |file: &Arc<File>| {
            Ok(Source::prefixed(name.clone(), in_proc(file), &cuts(file)?).with_pairs(std::any::type_name::<(K, V)>()))
        };
        let sources = files.iter().map(source).collect::<io::Result<Vec<Source>>>()?;
        Ok(Input::of(Opened { sources: sources.into(), kept: files.to_vec(), bad: Vec::new() }))
    }
}

/// Reads where a file may be cut. A file that was never written has no pairs.
fn cuts(file: &File) -> io::Result<Vec<u64>> {
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let mut count = [0; WORD_BYTES as usize];
    file.read_exact_at(&mut count, bytes - WORD_BYTES)?;
    let words_bytes = u64::from_le_bytes(count) * WORD_BYTES;
    let mut words = vec![0; words_bytes as usize];
    file.read_exact_at(&mut words, bytes - WORD_BYTES - words_bytes)?;
    Ok(words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

impl<K: Key, V: Datum> Sink<K, V> for PairFiles<K, V> {
    fn begin(&self, parts: usize) -> Result<(), ProgramError> {
        let file = |part| {
            let folder = &self.folder(part).path;
            let file = tempfile::tempfile_in(folder);
            file.map(Arc::new).map_err(|error| cannot_keep(folder, &error))
        };
        let files = (0..parts).map(file).collect::<Result<_, _>>()?;
        self.files.set(files).expect("a job begins once");
        Ok(())
    }

    fn open(&self, Attempt { part, .. }: Attempt) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError> {
        let (file, folder) = (&self.files()[part], self.folder(part));
        file.set_len(0)?;
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Box::new(PairFile { file, folder, buffer, written: 0, cuts: Vec::new() }))
    }

    fn commit(&self, _: &[Attempt]) -> Result<(), ProgramError> {
        Ok(())
    }
}

fn cannot_keep(folder: &Path, error: &io::Error) -> ProgramError {
    let folder = named(folder);
    ProgramError::new(format!("cannot keep the pairs in {folder}: {error}; name another with Job::spill_dirs"))
}

/// The file of a part.
struct PairFile<'f> {
    file: &'f File,
    folder: &'f TemporaryFolder,
    buffer: Vec<u8>,
    written: u64,
    cuts: Vec<u64>,
}

impl PairFile<'_> {
    fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<(), ProgramError> {
        let says = |error: io::Error| cannot_keep(&self.folder.path, &error);
        if !self.folder.has_room(self.file) {
            return Err(says(little_room(self.folder.kept_free_bytes)));
        }
        self.file.write_all_at(&self.buffer, self.written).map_err(says)?;
        self.written = self.end();
        self.buffer.clear();
        Ok(())
    }
}

impl<K: Key, V: Datum> SinkWriter<K, V> for PairFile<'_> {
    fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), ProgramError> {
        let bytes = entry::width::<K, V>(key, value) as u32;
        self.buffer.extend_from_slice(&bytes.to_le_bytes());
        entry::append::<K, V>(0, key, value, &mut self.buffer);
        if self.end() - self.cuts.last().unwrap_or(&0) >= CUT_BYTES {
            self.cuts.push(self.end());
        }
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn close(mut self: Box<Self>) -> Result<(), ProgramError> {
        if self.cuts.last() != Some(&self.end()) {
            self.cuts.push(self.end());
        }
        let count = self.cuts.len() as u64;
        let words = self.cuts.iter().copied().chain([count]);
        self.buffer.extend(words.flat_map(u64::to_le_bytes));
        self.flush()
    }
}
