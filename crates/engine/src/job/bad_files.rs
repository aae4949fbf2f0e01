//! A look at all files before a job that sets bad ones aside: a job of its own, which counts nothing.
//!
//! Half a file must never be counted. Where damage shows only when a file is decoded, it would show after a part of
//! the file has been mapped, committed and combined. So each file is read once to its end before.

use std::collections::HashMap;
use std::io;

use gristmill_os::process::threads_in_this_process;

use crate::data::datum::Bytes;
use crate::error::{Asked, Error, Result};
use crate::input::paths::Input;
use crate::input::records::Records;
use crate::input::source::{Source, TaskMemory};
use crate::input::split::Split;
use crate::job::builder::Job;
use crate::plan::settings::Isolation;
use crate::program::map_reduce::{Emit, MapReduce};

/// Says of each file what is wrong with it, if anything is. Its input are the numbers of the files.
struct Check<'s, C> {
    sources: &'s [Source],
    check: C,
}

impl<C: Fn(&Source) -> std::result::Result<(), String> + Sync> MapReduce for Check<'_, C> {
    type Key = u32;
    type Value = Bytes;
    const UNPACKS: bool = true;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u32, Bytes>) {
        for number in split.bytes().as_chunks().0 {
            let number = u32::from_le_bytes(*number);
            let source = &self.sources[number as usize];
            // Of this file, and of what is made of it.
            let memory = split.source().memory().share(2);
            if let Err(why) = (self.check)(&source.clone().with_memory(TaskMemory { decoder: memory, unpack: memory }))
            {
                out.emit(number, why.as_bytes());
            }
        }
    }
}

/// What a worker of the check should have, to decode files.
const WORKER_BYTES: usize = 16 << 20;

/// Calls `check` for all files, in processes of their own if this process can be forked; returns the numbers of those of which
/// it says something, with what it says. A file that crashes it is among them. All of this within `memory_bytes`, if they are
/// given.
pub(crate) fn all(
    sources: &[Source],
    memory_bytes: Option<usize>,
    check: impl Fn(&Source) -> std::result::Result<(), String> + Sync,
) -> Result<HashMap<usize, String>> {
    let numbers: Vec<u8> = (0..sources.len() as u32).flat_map(u32::to_le_bytes).collect();
    let input = Input::bytes("the numbers of the files", &numbers)?;
    let program = Check { sources, check };
    let threads = threads_in_this_process().asked("counting the threads of this process")?;
    let isolation = if threads > 1 { Isolation::Thread } else { Isolation::Process };
    // As few tasks as keep all workers busy, and no more than that.
    let split_bytes = 4 * (sources.len() as u64).div_ceil(4096);
    let mut job = Job::new(&program, input).records(Records::Fixed(4)).split_bytes(split_bytes).sample(false);
    if let Some(bytes) = memory_bytes {
        // The job itself may be planned with fewer workers than there are processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        job = job.memory(bytes).workers((bytes / WORKER_BYTES).clamp(1, processors.min(sources.len())));
    }
    // A file that crashes the check is a record that is set aside.
    let (found, summary) = job.isolation(isolation).skip_bad_records(sources.len().min(1_000_000) as u32).run()?;
    let mut bad: HashMap<usize, String> =
        found.iter().map(|(number, why)| (number as usize, String::from_utf8_lossy(why).into_owned())).collect();
    bad.extend(summary.bad_records.iter().map(|record| {
        let number = (record.offset / 4) as usize;
        let error = Error::Unfit { path: sources[number].name.clone(), why: record.cause.clone() };
        (number, error.to_string())
    }));
    Ok(bad)
}

/// What is wrong with a file that cannot be read to its end.
pub(crate) fn read_to_the_end(source: &Source) -> std::result::Result<(), String> {
    let mut content = source.open().map_err(|error| error_of(source, 0, error))?;
    let (mut buffer, mut at) = (vec![0; 256 << 10], 0);
    loop {
        match content.read(&mut buffer) {
            Ok(0) if source.is_plain() && at < source.bytes => {
                let path = source.name.clone();
                return Err(Error::Truncated { path, expected: source.bytes, found: at }.to_string());
            }
            Ok(0) => return Ok(()),
            Ok(read) => at += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error_of(source, at, error)),
        }
    }
}

/// The sentence that a job would end with.
fn error_of(source: &Source, offset: u64, error: io::Error) -> String {
    let path = source.name.clone();
    match error.raw_os_error() {
        Some(_) => Error::Read { path, offset, source: error }.to_string(),
        None => Error::Compressed { path, offset, why: error.to_string() }.to_string(),
    }
}
