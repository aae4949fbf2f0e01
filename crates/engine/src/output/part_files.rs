//! A sink that makes a folder of files, one for each part, all at once.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::data::datum::{Datum, Key};
use crate::output::parts::Row;
use crate::output::sink::{Attempt, Sink, SinkWriter};
use crate::program_error::ProgramError;

/// A [`Sink`] that makes a folder with a file for each part (`part-00000`, `part-00001`, ...), whose pairs are written
/// as rows.
///
/// The files are written to a hidden folder beside it, which gets its name when all of them are complete. So the folder
/// has either the whole result or does not exist. If the job fails, the hidden folder is removed; if the process is
/// killed, it stays. Nothing is synced to the disk.
///
/// ```
/// use gristmill::sinks::{PartFiles, Row};
/// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
///
/// /// Counts letters.
/// struct Letters;
///
/// impl MapReduce for Letters {
///     type Key = char;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<char, u64>) -> Result<(), ProgramError> {
///         chunk.bytes().iter().for_each(|byte| out.emit(char::from(*byte), 1));
///         Ok(())
///     }
/// }
///
/// /// A row of CSV.
/// struct Csv;
///
/// impl Row<char, u64> for Csv {
///     fn write(&self, letter: char, count: u64, to: &mut Vec<u8>) {
///         to.extend_from_slice(format!("{letter},{count}\n").as_bytes());
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// let counts = dir.path().join("counts");
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Letters, Input::bytes("frog", b"croak")?).workers(1).isolation(Isolation::Thread);
/// job.run_into(&PartFiles::new(&counts, &Csv)?)?;
/// assert_eq!(std::fs::read_to_string(counts.join("part-00000"))?, "a,1\nc,1\nk,1\no,1\nr,1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PartFiles<'f, K: Key, V: Datum> {
    folder: PathBuf,
    /// The hidden folder, in which everything is written.
    hidden: PathBuf,
    format: Box<dyn PartFormat<K, V> + 'f>,
    /// The process that made this: workers are copies of it.
    process: u32,
}

/// The format of a file with a part of a result.
pub trait PartFormat<K: Key, V: Datum>: Sync {
    /// The end of the file's name, such as `.parquet`; may be empty.
    fn suffix(&self) -> &str;

    /// Begins a file, which is empty and open for writing.
    ///
    /// # Errors
    /// As [`Sink::open`]. The name of the file is added.
    fn begin(&self, file: File) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError>;
}

impl<'f, K: Key, V: Datum> PartFiles<'f, K, V> {
    /// Makes a sink for `folder`, which must not exist yet, unless it is empty.
    ///
    /// # Errors
    /// The folder has files, or its hidden neighbour cannot be made.
    pub fn new(folder: impl Into<PathBuf>, row: &'f dyn Row<K, V>) -> io::Result<PartFiles<'f, K, V>> {
        PartFiles::with_format(folder, Rows(row))
    }

    /// As [`PartFiles::new`], with files in a format of one's own.
    ///
    /// # Errors
    /// As there.
    pub fn with_format(
        folder: impl Into<PathBuf>,
        format: impl PartFormat<K, V> + 'f,
    ) -> io::Result<PartFiles<'f, K, V>> {
        let folder = folder.into();
        let says = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot make the folder {}: {error}", folder.display()))
        };
        let is_free = match fs::read_dir(&folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(says(error)),
        };
        if !is_free {
            return Err(says(io::ErrorKind::DirectoryNotEmpty.into()));
        }
        let name = folder.file_name().ok_or_else(|| says(io::ErrorKind::InvalidInput.into()))?;
        let beside = folder.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let hidden = tempfile::Builder::new().prefix(&format!(".{}.", name.to_string_lossy())).tempdir_in(beside);
        let hidden = hidden.map_err(says)?.keep();
        Ok(PartFiles { folder, hidden, format: Box::new(format), process: std::process::id() })
    }

    fn path(&self, Attempt { part, attempt }: Attempt) -> PathBuf {
        self.hidden.join(format!("{part}.{attempt}"))
    }
}

/// Names the file in an error.
fn about(path: &Path, error: ProgramError) -> ProgramError {
    let why = format!("cannot write {}: {error}", path.display());
    error.with_message(why)
}

impl<K: Key, V: Datum> Sink<K, V> for PartFiles<'_, K, V> {
    fn open(&self, part: Attempt) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError> {
        let path = self.path(part);
        let writer = File::create(&path).map_err(ProgramError::from).and_then(|file| self.format.begin(file));
        match writer {
            Ok(writer) => Ok(Box::new(PartFile { path, writer })),
            Err(error) => Err(about(&path, error)),
        }
    }

    fn commit(&self, parts: &[Attempt]) -> Result<(), ProgramError> {
        let commit = || {
            for part in parts {
                let name = format!("part-{:05}{}", part.part, self.format.suffix());
                fs::rename(self.path(*part), self.hidden.join(name))?;
            }
            // What dead workers have begun has other names.
            for entry in fs::read_dir(&self.hidden)? {
                let entry = entry?;
                if !entry.file_name().to_string_lossy().starts_with("part-") {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::rename(&self.hidden, &self.folder)
        };
        commit().map_err(|error: io::Error| about(&self.folder, error.into()))
    }

    fn abort(&self) {
        drop(fs::remove_dir_all(&self.hidden));
    }
}

/// Removes what was not committed.
impl<K: Key, V: Datum> Drop for PartFiles<'_, K, V> {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            self.abort();
        }
    }
}

/// The file of a part. Its errors name it.
struct PartFile<'f, K: Key, V: Datum> {
    path: PathBuf,
    writer: Box<dyn SinkWriter<K, V> + 'f>,
}

impl<K: Key, V: Datum> SinkWriter<K, V> for PartFile<'_, K, V> {
    fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), ProgramError> {
        self.writer.pair(key, value).map_err(|error| about(&self.path, error))
    }

    fn close(self: Box<Self>) -> Result<(), ProgramError> {
        self.writer.close().map_err(|error| about(&self.path, error))
    }
}

/// Files of rows.
struct Rows<'r, K: Key, V: Datum>(&'r dyn Row<K, V>);

impl<K: Key, V: Datum> PartFormat<K, V> for Rows<'_, K, V> {
    fn suffix(&self) -> &str {
        ""
    }

    fn begin(&self, file: File) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError> {
        Ok(Box::new(RowFile { file: BufWriter::with_capacity(1 << 16, file), row: self.0, line: Vec::new() }))
    }
}

/// A file of rows.
struct RowFile<'r, K: Key, V: Datum> {
    file: BufWriter<File>,
    row: &'r dyn Row<K, V>,
    line: Vec<u8>,
}

impl<K: Key, V: Datum> SinkWriter<K, V> for RowFile<'_, K, V> {
    fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), ProgramError> {
        self.line.clear();
        self.row.write(key, value, &mut self.line);
        Ok(self.file.write_all(&self.line)?)
    }

    fn close(mut self: Box<Self>) -> Result<(), ProgramError> {
        Ok(self.file.flush()?)
    }
}
