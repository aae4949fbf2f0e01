//! The check of all files before a job that sets bad files aside. The check is itself a job, which counts nothing.
//!
//! Half a file must never be counted. Damage that shows only when a file is decoded would show after a part of the file
//! has been mapped, committed and combined. So each file is first read once to its end.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;

use gristmill_os::process::threads_in_this_process;

use crate::coordinator::{self, Request, Terms};
use crate::data::datum::Bytes;
use crate::error::{Asked, Error, Result};
use crate::input::chunk::Chunk;
use crate::input::look::Look;
use crate::input::paths::Input;
use crate::input::records::Records;
use crate::input::source::{Source, TaskMemory};
use crate::memory::{Memory, is_limit};
use crate::plan::settings::{Isolation, Settings};
use crate::program::ending::{AsMapped, Whole};
use crate::program::map_reduce::{Emit, MapReduce};
use crate::program_error::ProgramError;

/// Checks files, whose numbers are its input, and emits what is wrong with each bad one.
struct Check<'s, C> {
    sources: &'s [Source],
    /// Whether `check` keeps the content of a file in memory.
    unpacks: bool,
    check: C,
}

impl<C: Fn(&Source) -> Result<()> + Sync> MapReduce for Check<'_, C> {
    /// The number of a file, doubled; plus one if the file needs more memory than there is for it.
    type Key = u64;
    type Value = Bytes;
    const UNPACKS: bool = true;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, Bytes>) -> Result<(), ProgramError> {
        for number in chunk.bytes().as_chunks().0 {
            let number = u32::from_le_bytes(*number);
            let source = &self.sources[number as usize];
            // The memory to decode a file, and for what is made of it.
            let memory = chunk.source().memory();
            let memory = match self.unpacks {
                true => TaskMemory { decoder: memory.share(2), unpack: memory.share(2) },
                false => TaskMemory { decoder: memory, unpack: Memory::of(0) },
            };
            if let Err(error) = (self.check)(&source.clone().with_memory(memory)) {
                let key = u64::from(number) * 2 + u64::from(error.is_limit());
                out.emit(key, error.to_string().as_bytes());
            }
        }
        Ok(())
    }
}

/// The memory that a worker of the check should have to decode files.
const WORKER_BYTES: usize = 16 << 20;

/// Calls `check` for all files, in separate processes if this process can be forked. Returns the numbers of the bad
/// files with the reasons; a file that crashes the check is one of them. The check stays within the memory and the
/// deadline of `look`, if they are given; if it `unpacks`, a part of the memory is reserved for what `check` makes of
/// a file.
///
/// # Errors
/// A file needs more memory than there is for it, even when it is checked alone.
pub(crate) fn all(
    sources: &[Source],
    look: &Look,
    unpacks: bool,
    check: impl Fn(&Source) -> Result<()> + Sync,
) -> Result<HashMap<usize, String>> {
    let program = Check { sources, unpacks, check };
    // The job itself may be planned with fewer workers than there are processors.
    let processors = gristmill_os::machine::processors().usable.min(sources.len());
    let workers = look.memory_bytes.map_or(processors, |bytes| (bytes / WORKER_BYTES).clamp(1, processors));
    let mut found = program.run((0..sources.len() as u32).collect(), look, workers)?;
    if workers > 1 && !found.too_large.is_empty() {
        let alone = program.run(found.too_large.into_keys().collect(), look, 1)?;
        found.bad.extend(alone.bad);
        found.too_large = alone.too_large;
    }
    match found.too_large.into_iter().min() {
        Some((_, what)) => Err(Error::TooLarge { what }),
        None => Ok(found.bad.into_iter().map(|(number, why)| (number as usize, why)).collect()),
    }
}

/// The findings, by the number of the file.
struct Found {
    bad: HashMap<u32, String>,
    /// Files for which there was not enough memory.
    too_large: HashMap<u32, String>,
}

impl<C: Fn(&Source) -> Result<()> + Sync> Check<'_, C> {
    /// Checks the files with these numbers.
    fn run(&self, numbers: Vec<u32>, look: &Look, workers: usize) -> Result<Found> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let input = Input::bytes("the numbers of the files", &bytes)?;
        let threads = threads_in_this_process().asked("counting the threads of this process")?;
        let isolation = if threads > 1 { Isolation::Thread } else { Isolation::Process };
        // Just enough tasks to keep all workers busy.
        let split_bytes = 4 * (numbers.len() as u64).div_ceil(4096);
        let settings = Settings {
            isolation,
            records: Records::Fixed(4),
            split_bytes: Some(split_bytes),
            sample: Some(false),
            memory_bytes: look.memory_bytes,
            workers: Some(workers),
            // A file that crashes the check is a record that is set aside.
            skip_bad_records: numbers.len().min(1_000_000) as u32,
            ..Settings::default()
        };
        let mut found = Found { bad: HashMap::new(), too_large: HashMap::new() };
        let (cancel, search) = (look.interrupt.token.clone(), look.interrupt.clone());
        let terms = Terms { settings, cancel, search, ..Terms::default() };
        let request = Request::<Whole<_, AsMapped>> { program: self, reduce: None, terms };
        let summary = coordinator::run(
            request,
            |_| input.find(),
            |key, what| {
                let place = if key % 2 == 0 { &mut found.bad } else { &mut found.too_large };
                place.insert((key / 2) as u32, String::from_utf8_lossy(what).into_owned());
                ControlFlow::Continue(())
            },
        );
        // The error names numbers of files, not the files.
        let summary = summary.map_err(|error| match error {
            Error::MemoryRefused { .. } => Error::TooLarge {
                what: "the system refused the memory to read the input to its end once, as Input::skip_bad_files asks: raise \
                       the limit of memory (ulimit -v, or that of the cgroup)"
                    .to_owned(),
            },
            error => error,
        })?;
        found.bad.extend(summary.bad_records.iter().map(|record| {
            let number = numbers[(record.offset / 4) as usize];
            let error = Error::Unfit { path: self.sources[number as usize].name.clone(), why: record.cause.clone() };
            (number, error.to_string())
        }));
        Ok(found)
    }
}

/// Checks that a file can be read to its end.
///
/// # Errors
/// The error with which a job would end.
pub(crate) fn read_to_the_end(source: &Source) -> Result<()> {
    let mut content = source.open().map_err(|error| error_of(source, 0, error))?;
    let (mut buffer, mut at) = (vec![0; 256 << 10], 0);
    loop {
        match content.read(&mut buffer) {
            Ok(0) if source.is_plain() && at < source.bytes => {
                let path = source.name.clone();
                return Err(Error::Truncated { path, expected: source.bytes, found: at });
            }
            Ok(0) => return Ok(()),
            Ok(read) => at += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error_of(source, at, error)),
        }
    }
}

/// Returns the error with which a job would end.
fn error_of(source: &Source, offset: u64, error: io::Error) -> Error {
    let path = source.name.clone();
    if error.raw_os_error().is_some() {
        return Error::Read { path, offset, source: error };
    }
    let is_limit = is_limit(&error);
    let error = Error::Compressed { path, offset, why: error.to_string() };
    if is_limit { Error::TooLarge { what: error.to_string() } } else { error }
}
