//! From a task that fails to the record that does it.
//!
//! ```text
//!  a job that sets no record aside:  every attempt maps chunks; the last retry goes record by record
//!  a job that does:                  every attempt maps a chunk and keeps apart what it emits, until the map function
//!                                    has returned; if it panics, or rejects the input, the chunk goes record by record,
//!                                    and so do chunks with a record that was set aside, and tasks whose worker died
//! ```
//!
//! Record by record, the worker says where it is before each call (`shared/bad_records.rs`), so a death names its record. What
//! a map function emits before it fails counts for nothing: pairs are kept apart until it has returned. A map function
//! sees whole records, cut anywhere, so that one record at a time gives the same pairs.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;

use crate::datum::{Datum, Key};
use crate::entry;
use crate::exchange::JobIsOver;
use crate::map_reduce::{Emit, MapReduce};
use crate::quotes::State;
use crate::records::Scan;
use crate::settings::Isolation;
use crate::shared::Place;
use crate::split::Split;
use crate::worker::Work;

/// Maps a task with care.
pub(crate) struct Narrow<'w, J: MapReduce> {
    work: &'w Work<'w, J>,
    slot: usize,
    /// A worker died of this task: no chunk is mapped at once.
    careful: bool,
    apart: Apart<J::Key, J::Value>,
    /// The chunk as it was read: a map function may write into it.
    chunk: Vec<u8>,
}

/// Why the map function did not come to its end.
enum Failed {
    Panicked(Box<dyn Any + Send>),
    /// Which byte of the file, and what about it.
    Rejected(u64, String),
}

impl<'w, J: MapReduce> Narrow<'w, J> {
    /// `None` if `task` is mapped as tasks usually are.
    pub fn of(work: &'w Work<'w, J>, slot: usize, task: usize) -> Option<Narrow<'w, J>> {
        let careful = work.shared.is_careful(task);
        let wanted = careful || work.settings.skip_bad_records > 0;
        wanted.then(|| Narrow { work, slot, careful, apart: Apart::new(), chunk: Vec::new() })
    }

    /// Maps a chunk, or all of it that does not fail.
    #[cold]
    #[inline(never)]
    pub fn map(&mut self, split: &mut Split<'_>, buffer: &mut impl Emit<J::Key, J::Value>) {
        let range = split.offset..split.offset + split.bytes.len() as u64;
        if self.careful || self.work.shared.is_set_aside(split.index, range) {
            return self.map_records(split, buffer);
        }
        self.chunk.clear();
        self.chunk.extend_from_slice(split.bytes);
        match self.try_map(split) {
            Ok(()) => self.apart.emit_into(buffer),
            Err(_) => {
                split.bytes.copy_from_slice(&self.chunk);
                self.map_records(split, buffer);
            }
        }
    }

    fn map_records(&mut self, split: &mut Split<'_>, buffer: &mut impl Emit<J::Key, J::Value>) {
        let Work { shared, settings, .. } = *self.work;
        let mut scan = Scan::new(split.records, split.offset, State::default());
        let mut at = 0;
        while at < split.bytes.len() {
            let end = split.record_end(&mut scan, at);
            let offset = split.offset + at as u64;
            let place = Place { source: split.index, offset, bytes: (end - at) as u64 };
            let mut record = Split { bytes: &mut split.bytes[at..end], offset, rejected: None, ..*split };
            at = end;
            if shared.is_set_aside(place.source, offset..offset + 1) {
                continue;
            }
            shared.begin_record(self.slot, place);
            if settings.task_timeout.is_some() {
                // What may take as long as a whole task is now one record.
                shared.start_clock(self.slot, monotonic_ns());
            }
            match self.try_map(&mut record) {
                Ok(()) => shared.end_record(self.slot),
                Err(failed) if settings.skip_bad_records > 0 => self.set_aside(&failed),
                Err(Failed::Panicked(panic)) => resume_unwind(panic),
                Err(Failed::Rejected(offset, why)) => {
                    split.rejected = Some((offset, why));
                    return;
                }
            }
            self.apart.emit_into(buffer);
        }
    }

    /// Maps `split`, and keeps apart what that emits; nothing if it fails.
    fn try_map(&mut self, split: &mut Split<'_>) -> Result<(), Failed> {
        let Work { program, settings, plan, .. } = *self.work;
        // What is set aside is told once, with its place. Threads have one hook together, so theirs stays.
        let silent = settings.skip_bad_records > 0 && plan.isolation == Isolation::Process;
        let hook = silent.then(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            hook
        });
        // A map function depends on nothing but its split, so nothing that it left half done is seen again.
        let mapped = catch_unwind(AssertUnwindSafe(|| program.map(split, &mut self.apart)));
        if let Some(hook) = hook {
            std::panic::set_hook(hook);
        }
        let failed = match (mapped, split.rejected.take()) {
            (Ok(()), None) => return Ok(()),
            (Ok(()), Some((offset, why))) => Failed::Rejected(offset, why),
            (Err(panic), _) => Failed::Panicked(panic),
        };
        self.apart.clear();
        Err(failed)
    }

    /// Has the coordinator set the record at hand aside.
    fn set_aside(&self, failed: &Failed) {
        let (shared, slot) = (self.work.shared, self.slot);
        let cause = match failed {
            Failed::Panicked(panic) => panic_message(&**panic),
            Failed::Rejected(_, why) => why.clone(),
        };
        shared.stop_clock(slot);
        shared.ask(slot, &cause);
        // Nobody waits for this worker in order to answer it, so it need not drain what arrives meanwhile.
        while shared.asks(slot) {
            if shared.is_over() {
                resume_unwind(Box::new(JobIsOver));
            }
            shared.pages.doorbell(slot).sleep_unless(&SharedFutex, || !shared.asks(slot) || shared.is_over());
        }
        shared.end_record(slot);
        shared.start_clock(slot, monotonic_ns());
    }
}

/// A panic, as a cause.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", words.filter(|words| !words.is_empty()).unwrap_or("a panic without words"))
}

/// Pairs that do not count yet.
struct Apart<K, V> {
    pairs: Vec<u8>,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Apart<K, V> {
    fn new() -> Apart<K, V> {
        Apart { pairs: Vec::new(), kind: PhantomData }
    }

    fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Now they count.
    fn emit_into(&mut self, buffer: &mut impl Emit<K, V>) {
        for (_, pair) in entry::pairs::<K, V>(&self.pairs) {
            buffer.emit(pair.key, pair.value);
        }
        self.clear();
    }
}

impl<K: Key, V: Datum> Emit<K, V> for Apart<K, V> {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        entry::append::<K, V>(0, key, value, &mut self.pairs);
    }
}
