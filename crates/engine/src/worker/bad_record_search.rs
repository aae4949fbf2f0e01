//! Finds the record at which a task fails.
//!
//! ```text
//!  first attempt:   chunk by chunk; the worker says at which one it is
//!  the others:      as before, but record by record where a worker has died of this task
//!
//!  a job that sets records aside keeps apart what the map function emits until it has returned; if it panics, or returns
//!  an error, that chunk goes record by record, and so do chunks with a record that was set aside
//!
//!  an error that ends the job and has no place: that chunk goes record by record, to find the first that fails
//! ```
//!
//! So a death in a chunk costs one more pass over the records of that chunk, not of the task, and the next death there
//! names its record. Pairs that the map function emits before it fails do not count: they are kept apart until it has
//! returned. A map function sees whole records, cut anywhere, so mapping one record at a time gives the same pairs.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;

use crate::control::bad_records::{Found, SetAside};
use crate::control::job_is_over::JobIsOver;
use crate::control::place::Place;
use crate::data::contract::Contract;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::failure::Failure;
use crate::input::chunk::Chunk;
use crate::input::quotes::State;
use crate::input::records::Scan;
use crate::program::accumulator;
use crate::program::ending::Program;
use crate::program::map_reduce::{Emit, MapReduce};
use crate::program_error::{Consequence, ProgramError};
use crate::worker::setup::Setup;
use crate::worker::work::Work;

/// Maps a task, chunk by chunk or record by record.
pub(crate) struct BadRecordSearch<'w, J: Program> {
    work: &'w Work<'w, J>,
    pub slot: usize,
    /// No worker has died of this task, and the job does not set records aside.
    pub is_plain: bool,
    /// A worker has died of this task, so the task timeout applies to each piece of it.
    careful: bool,
    /// The places at which workers died of it.
    suspects: Vec<Place>,
    set_aside: &'w SetAside,
    found: Found,
    apart: Apart<J::Key, J::Value>,
    /// A copy of the chunk, because a map function may write to it.
    chunk: Vec<u8>,
}

/// Why the map function did not return normally.
enum Failed {
    Panicked(Box<dyn Any + Send>),
    Returned(ProgramError),
}

impl<'w, J: Program> BadRecordSearch<'w, J> {
    pub fn new(work: &'w Work<'w, J>, slot: usize, task: usize, set_aside: &'w SetAside) -> BadRecordSearch<'w, J> {
        let careful = work.shared.is_careful(task);
        let suspects = if careful { work.shared.suspects(task) } else { Vec::new() };
        let is_plain = !careful && work.plan.skip_bad_records == 0;
        let (found, apart, chunk) = (Found::default(), Apart::new(), Vec::new());
        BadRecordSearch { work, slot, is_plain, careful, suspects, set_aside, found, apart, chunk }
    }

    /// Announces that this chunk is being mapped.
    #[inline]
    pub fn begin(&self, chunk: &Chunk<'_>) {
        self.work.shared.begin_place(self.slot, place_of(chunk), false);
    }

    /// Announces that no chunk is being mapped.
    #[inline]
    pub fn end(&self) {
        self.work.shared.end_place(self.slot);
    }

    /// Maps a chunk, or all of its records that do not fail.
    #[cold]
    #[inline(never)]
    pub fn map(&mut self, chunk: &mut Chunk<'_>, buffer: &mut impl Emit<J::Key, J::Value>) -> Result<(), Failure> {
        let place = place_of(chunk);
        let is_suspect = self.suspects.iter().any(|suspect| suspect.meets(place));
        if is_suspect || self.set_aside.any_in(place.source, place.range()) {
            return self.map_records(chunk, buffer);
        }
        self.begin(chunk);
        self.start_clock();
        if self.work.plan.skip_bad_records == 0 {
            let mapped = self.work.functions.program.map(chunk, buffer);
            self.end();
            return mapped.map_err(|error| self.find(chunk, error));
        }
        self.chunk.clear();
        self.chunk.extend_from_slice(chunk.bytes);
        let mapped = self.try_map(chunk);
        self.end();
        match mapped {
            Ok(()) => {
                self.apart.emit_into(buffer);
                Ok(())
            }
            Err(_) => {
                chunk.bytes.copy_from_slice(&self.chunk);
                self.map_records(chunk, buffer)
            }
        }
    }

    /// Ends the task. Reports the records that it found before the task can count.
    pub fn finish(mut self) {
        self.found.tell(self.work.shared, self.slot, || wait(self.work, self.slot));
    }

    /// Restarts the task's clock for the next piece.
    fn start_clock(&self) {
        if self.careful && self.work.plan.task_timeout.is_some() {
            self.work.shared.start_clock(self.slot, monotonic_ns());
        }
    }

    fn map_records(&mut self, chunk: &mut Chunk<'_>, buffer: &mut impl Emit<J::Key, J::Value>) -> Result<(), Failure> {
        let Setup { shared, plan, .. } = *self.work.setup;
        let whole = place_of(chunk);
        let sets_aside = plan.skip_bad_records > 0;
        let some_are_aside = self.set_aside.any_in(whole.source, whole.range());
        let mut scan = Scan::new(chunk.records, chunk.offset, State::default());
        let mut at = 0;
        while at < chunk.bytes.len() {
            let end = chunk.record_end(&mut scan, at);
            let offset = chunk.offset + at as u64;
            let place = Place { source: chunk.index, offset, bytes: (end - at) as u64 };
            let mut record = Chunk { bytes: &mut chunk.bytes[at..end], offset, ..*chunk };
            at = end;
            if some_are_aside && self.set_aside.any_in(place.source, offset..offset + 1) {
                continue;
            }
            shared.begin_place(self.slot, place, true);
            if plan.task_timeout.is_some() {
                shared.start_clock(self.slot, monotonic_ns());
            }
            match self.try_map(&mut record) {
                Ok(()) => shared.end_place(self.slot),
                Err(Failed::Returned(error)) if error.verdict == Consequence::Retry => resume_unwind(Box::new(error)),
                Err(Failed::Returned(error)) if error.verdict == Consequence::TooLarge || !sets_aside => {
                    return Err(rejected(place, error));
                }
                Err(Failed::Panicked(panic)) if !sets_aside => resume_unwind(panic),
                Err(failed) => self.leave_out(place, &failed),
            }
            self.apart.emit_into(buffer);
        }
        Ok(())
    }

    /// Returns the failure that `error` means for the job. If it has no place, maps the records of `chunk` one by one,
    /// to find the first that fails. Ends this worker if the task is to be tried again.
    #[cold]
    #[inline(never)]
    pub fn find(&mut self, chunk: &mut Chunk<'_>, error: ProgramError) -> Failure {
        let (whole, error) = (place_of(chunk), error.unless_retried());
        if error.offset.is_some() {
            return rejected(whole, error);
        }
        // What the map function has written over is lost.
        let mut scan = Scan::new(chunk.records, chunk.offset, State::default());
        let mut at = if chunk.is_written { chunk.bytes.len() } else { 0 };
        while at < chunk.bytes.len() {
            let end = chunk.record_end(&mut scan, at);
            let mut record = Chunk { bytes: &mut chunk.bytes[at..end], offset: chunk.offset + at as u64, ..*chunk };
            let place = place_of(&record);
            at = end;
            if let Err(Failed::Returned(error)) = self.try_map(&mut record) {
                return rejected(place, error);
            }
            self.apart.clear();
        }
        let why = format!("in the {} bytes from byte {}: {error}", whole.bytes, whole.offset);
        rejected(whole, error.with_message(why))
    }

    /// Maps `chunk` and returns the pairs that it emitted; if it fails, returns the reason and drops its pairs.
    fn try_map(&mut self, chunk: &mut Chunk<'_>) -> Result<(), Failed> {
        let (program, plan) = (self.work.functions.program, self.work.plan);
        QUIET.set(plan.skip_bad_records > 0);
        let added_before = accumulator::of_this_task();
        // A map function depends only on its chunk, so nothing that it left half done is seen again.
        let mapped = catch_unwind(AssertUnwindSafe(|| program.map(chunk, &mut self.apart)));
        QUIET.set(false);
        let failed = match mapped {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => Failed::Returned(error),
            Err(panic) => Failed::Panicked(panic),
        };
        self.apart.clear();
        accumulator::set_of_this_task(added_before);
        Err(failed)
    }

    /// Lets the coordinator set a record aside.
    fn leave_out(&mut self, place: Place, failed: &Failed) {
        let (work, slot) = (self.work, self.slot);
        work.shared.end_place(slot);
        let cause = match failed {
            Failed::Panicked(panic) => panic_message(&**panic),
            Failed::Returned(error) => error.to_string(),
        };
        self.found.push(work.shared, slot, place, &cause, || wait(work, slot));
    }
}

/// Returns the failure of a job whose map function cannot use what is at `place`.
fn rejected(place: Place, error: ProgramError) -> Failure {
    Failure::Rejected { source: place.source, offset: error.offset.unwrap_or(place.offset), error }
}

fn place_of(chunk: &Chunk<'_>) -> Place {
    Place { source: chunk.index, offset: chunk.offset, bytes: chunk.bytes.len() as u64 }
}

/// Sleeps until the coordinator has read the reports. The coordinator does not wait for this worker, so the worker need
/// not drain its mailbox meanwhile. The clock of its task is stopped.
fn wait<J: Program>(work: &Work<'_, J>, slot: usize) {
    let shared = work.shared;
    if shared.is_over() {
        resume_unwind(Box::new(JobIsOver));
    }
    let (start_ns, waits_since_ns) = (shared.stop_clock(slot), monotonic_ns());
    shared.pages.doorbell(slot).sleep_unless(&SharedFutex, || !shared.asks(slot) || shared.is_over());
    shared.start_clock(slot, start_ns + (monotonic_ns() - waits_since_ns));
}

thread_local! {
    /// Panics are now reported elsewhere, with their places.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Silences caught panics in this worker process; they are reported when their record is set aside. Threads share the
/// panic hook with the caller, so it stays as it is for them.
pub(crate) fn be_quiet() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !QUIET.get() {
            hook(panic);
        }
    }));
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(error) = panic.downcast_ref::<ProgramError>() {
        let code = error.number().map_or(String::new(), |code| format!(" with the code {code}"));
        return format!("it failed{code}: {error}");
    }
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", words.filter(|words| !words.is_empty()).unwrap_or("a panic without words"))
}

/// Pairs that do not count yet.
struct Apart<K, V> {
    pairs: Vec<u8>,
    /// The buffer gets only pairs that were written here and read again, so a type that changes in between is detected
    /// before.
    contract: Contract,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Apart<K, V> {
    fn new() -> Apart<K, V> {
        Apart { pairs: Vec::new(), contract: Contract::default(), kind: PhantomData }
    }

    fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Emits the pairs.
    fn emit_into(&mut self, buffer: &mut impl Emit<K, V>) {
        for (_, pair) in entry::pairs::<K, V>(&self.pairs) {
            buffer.emit(pair.key, pair.value);
        }
        self.clear();
    }
}

impl<K: Key, V: Datum> Emit<K, V> for Apart<K, V> {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.contract.look::<K, V>(key, value);
        entry::append::<K, V>(0, key, value, &mut self.pairs);
    }
}
