//! The destination of the result: standard output, or a file that appears whole or not at all.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gristmill::files::Compression;
use gristmill::{Job, MapReduce};
use rustix::fs::OFlags;

use crate::output::column::{Column, Field, Format};
use crate::output::packer::Packer;
use crate::output::parts::Parts;
use crate::output::rows::Rows;
use crate::output::side_files::{self, Aside, Standard};
use crate::terminal::failure::Failure;
use crate::terminal::standard_output::standard_output;

/// Which rows are wanted, in which order.
#[derive(Args)]
pub struct Ranking {
    /// The order of the rows [default: count with --top, else key]
    #[arg(long, value_enum, help_heading = RESULT)]
    sort: Option<Sort>,

    /// Only the K rows with the greatest counts; of equal counts, those with the first keys
    #[arg(long, short = 'n', value_name = "K", help_heading = RESULT)]
    top: Option<NonZeroUsize>,
}

/// Where a result goes, and how its rows are written.
#[derive(Args)]
pub struct Destination {
    /// Write to this file instead of standard output, compressed if its name ends with .gz, .zst, .bz2, .xz or
    /// .lz4. The file appears when it is complete; after a failure, a file that was there before is unchanged. A file
    /// that is replaced passes on its owner and its permissions
    #[arg(long, short, value_name = "FILE", help_heading = RESULT)]
    output: Option<PathBuf>,

    /// How rows are written [default: the extension of --output (.tsv, .csv, .jsonl, .arrow, .parquet), or tsv]
    #[arg(long, value_enum, help_heading = RESULT)]
    format: Option<Format>,
}

pub const RESULT: &str = "Result";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By key, in ascending order of bytes: the same on every run, ready for join and diff. Sums of fractions need
    /// --deterministic for that
    Key,
    /// By count, greatest first, then by key: also the same on every run
    Count,
    /// No particular order, which is fastest
    None,
}

impl Ranking {
    /// Applies the ranking to a job. With --top it asks for one pair more, because one pair may not be a row.
    pub fn apply<'j, J: MapReduce>(&self, job: Job<'j, J>) -> Job<'j, J> {
        match (self.top, self.sort) {
            (Some(top), _) => job.top(top.get().saturating_add(1)),
            (None, None | Some(Sort::Key)) => job.order(gristmill::Order::ByKey),
            (None, Some(Sort::Count)) => job.order(gristmill::Order::ByValueDescending),
            (None, Some(Sort::None)) => job.order(gristmill::Order::Unordered),
        }
    }

    /// Returns true if the user has chosen rows or their order.
    pub fn is_given(&self) -> bool {
        self.top.is_some() || self.sort.is_some()
    }

    /// Returns the maximum number of rows.
    pub fn rows_max(&self) -> usize {
        self.top.map_or(usize::MAX, NonZeroUsize::get)
    }

    /// Returns true if the greatest rows are wanted in the order of their keys.
    pub fn is_top_by_key(&self) -> bool {
        self.top.is_some() && self.sort == Some(Sort::Key)
    }
}

impl Destination {
    /// Returns the output file if its name asks for a numpy array. For subcommands whose result is one.
    pub fn npy(&self) -> Option<&Path> {
        let path = self.output.as_deref().filter(|_| self.format.is_none());
        path.filter(|path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")))
    }

    /// Opens the destination, so that a failure to write shows before the job begins.
    pub fn open(&self, columns: impl Into<Vec<Column>>) -> Result<Output, Failure> {
        let format = match (self.format, self.path()) {
            (Some(format), _) => format,
            (None, Some(path)) => format_of(path)?,
            (None, None) => Format::Tsv,
        };
        if matches!(format, Format::Arrow | Format::Parquet)
            && let Some(path) = self.path().filter(|path| Compression::of_name(path).is_some())
        {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path}: what reads Arrow and Parquet files reads them in place, so they are not compressed as a whole. Leave \
                 out the last extension (Parquet packs its columns itself)"
            )));
        }
        let (to, place) = self.begin()?;
        match Rows::begin(format, columns.into(), to) {
            Ok(rows) => Ok(Output { rows, place }),
            Err(source) => Err(Failure::output(place.name, source)),
        }
    }

    /// Opens the destination for a result whose rows are already bytes; any name is allowed. If the job `continues` a
    /// checkpoint, its reducers do not write.
    pub fn open_raw(&self, continues: bool) -> Result<Raw, Failure> {
        if self.format.is_some() {
            return Err(Failure::Usage("what is sorted is written as it was read: leave out --format".into()));
        }
        let (to, UnnamedFile { name, aside }) = self.begin()?;
        let path = self.path();
        if continues || path.and_then(Compression::of_name).is_some() {
            return Ok(Raw::Stream(Box::new(ByteStream { to, place: UnnamedFile { name, aside } })));
        }
        let failed = |source| Failure::output(name.clone(), source);
        let mut file = match &aside {
            Some(aside) => aside.file.try_clone(),
            None => standard_output(),
        }
        .map_err(failed)?;
        // In append mode every write goes to the end, whatever its offset.
        let appends = rustix::fs::fcntl_getfl(&file).map_err(|errno| failed(errno.into()))?.contains(OFlags::APPEND);
        if appends || !file.metadata().map_err(failed)?.is_file() {
            return Ok(Raw::Stream(Box::new(ByteStream { to, place: UnnamedFile { name, aside } })));
        }
        let start = file.stream_position().map_err(failed)?;
        Ok(Raw::File(RawFile { name, file, start, aside }))
    }

    /// Returns the output path, if the result goes to a file.
    pub fn path(&self) -> Option<&Path> {
        self.output
            .as_deref()
            .filter(|path| *path != Path::new("-") && side_files::standard(path) != Some(Standard::Output))
    }

    /// Opens the destination without writing to it.
    fn begin(&self) -> Result<(Packer, UnnamedFile), Failure> {
        let path = self.path();
        let name = path.unwrap_or(Path::new("standard output")).to_owned();
        let failed = |source| Failure::output(name.clone(), source);
        let (file, aside) = match path {
            Some(path) => {
                let aside = Aside::create(path).map_err(failed)?;
                (aside.file.try_clone().map_err(failed)?, Some(aside))
            }
            None => (standard_output().map_err(failed)?, None),
        };
        let packer = Packer::new(file, path.and_then(Compression::of_name)).map_err(failed)?;
        Ok((packer, UnnamedFile { name, aside }))
    }
}

/// Returns the extension of a file's name in lower case, without a suffix for compression.
pub fn extension(path: &Path) -> Option<String> {
    let name = if Compression::of_name(path).is_some() { path.with_extension("") } else { path.to_owned() };
    name.extension().map(|extension| extension.to_ascii_lowercase().to_string_lossy().into_owned())
}

/// Returns the format that the name of a file asks for.
fn format_of(path: &Path) -> Result<Format, Failure> {
    match extension(path) {
        None => Ok(Format::Tsv),
        Some(extension) => match &extension[..] {
            "tsv" | "tab" | "txt" => Ok(Format::Tsv),
            "csv" => Ok(Format::Csv),
            "jsonl" | "ndjson" => Ok(Format::Jsonl),
            "arrow" | "feather" => Ok(Format::Arrow),
            "parquet" => Ok(Format::Parquet),
            _ => Err(Failure::Usage(format!(
                "{} does not say how rows are written: name it .tsv, .csv, .jsonl, .arrow or .parquet, or add --format",
                path.display()
            ))),
        },
    }
}

/// A destination for rows that are already bytes.
pub enum Raw {
    /// A stream of bytes.
    Stream(Box<ByteStream>),
    /// A file in which every byte has a known offset.
    File(RawFile),
    /// A folder of parts.
    Parts(Parts),
}

/// A file that is written from some offset on.
pub struct RawFile {
    pub name: PathBuf,
    file: File,
    pub start: u64,
    aside: Option<Aside>,
}

impl RawFile {
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Ends the file after `bytes` were written: gives it its name, or seeks to its end.
    pub fn finish(mut self, bytes: u64) -> Result<(), Failure> {
        let outcome = match self.aside {
            Some(aside) => aside.publish(),
            // The shell may have more to write.
            None => self.file.seek(SeekFrom::Start(self.start + bytes)).map(drop),
        };
        outcome.map_err(|source| Failure::output(self.name, source))
    }
}

/// A stream of bytes to the destination.
pub struct ByteStream {
    to: Packer,
    place: UnnamedFile,
}

impl ByteStream {
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Ends the result, given the outcome of writing it.
    pub fn finish(self, written: io::Result<()>) -> Result<(), Failure> {
        self.place.publish(self.to.finish(written))
    }
}

/// A result that is being written.
pub struct Output {
    rows: Rows,
    place: UnnamedFile,
}

impl Output {
    /// Writes one row.
    pub fn row(&mut self, fields: &[Field<'_>]) -> io::Result<()> {
        self.rows.row(fields)
    }

    /// Ends the result, given the outcome of writing its rows: flushes it, and gives the file its name.
    pub fn finish(self, rows_written: io::Result<()>) -> Result<(), Failure> {
        self.place.publish(self.rows.finish(rows_written))
    }

    /// Writes all rows, and completes the output.
    pub fn write<'r, R: AsRef<[Field<'r>]>>(mut self, rows: impl IntoIterator<Item = R>) -> Result<(), Failure> {
        let written = rows.into_iter().try_for_each(|row| self.row(row.as_ref()));
        self.finish(written)
    }
}

/// The name of a destination in messages, and the unnamed file.
struct UnnamedFile {
    name: PathBuf,
    aside: Option<Aside>,
}

impl UnnamedFile {
    /// Gives the file its name if everything was `written`. A reader that closes the pipe early is not a failure.
    fn publish(self, written: io::Result<()>) -> Result<(), Failure> {
        let UnnamedFile { name, aside } = self;
        match written.and_then(|()| aside.map_or(Ok(()), Aside::publish)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(|source| Failure::output(name, source)),
        }
    }
}
