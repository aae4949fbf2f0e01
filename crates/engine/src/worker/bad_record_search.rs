//! Finds the record at which a task fails.
//!
//! ```text
//!  first attempt:   chunk by chunk; the worker says at which one it is
//!  the others:      as before, but record by record where a worker has died of this task; once that has taken half a
//!                   second, the rest goes in 16 pieces, and the next attempt looks into the piece where a worker died
//!
//!  a job that sets records aside keeps apart what the map function emits until it has returned; if it panics, or returns
//!  an error, that chunk goes record by record, and so do chunks with a record that was set aside
//!
//!  an error that ends the job and has no place: that chunk goes record by record, to find the first that fails
//! ```
//!
//! So a death in a chunk costs one more pass over the records of that chunk, not of the task, and the next death there
//! names its record, or a piece of it if a call of the map function takes long whatever it is given. The last attempt
//! goes on record by record, so that its error can name one. Pairs that the map function emits before it fails do not
//! count: they are kept apart until it has returned. A map function sees whole records, cut anywhere, so mapping one
//! record at a time gives the same pairs.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;

use crate::control::bad_records::{Found, SetAside};
use crate::control::job_is_over::JobIsOver;
use crate::control::place::Place;
use crate::data::contract::Contract;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::failure::{Failure, panic_message};
use crate::input::chunk::Chunk;
use crate::input::quotes::State;
use crate::input::records::Scan;
use crate::program::accumulator;
use crate::program::aggregate::{self, Aggregate, ItemOf};
use crate::program::ending::Program;
use crate::program::map_reduce::{Emit, MapReduce};
use crate::program_error::{Consequence, ProgramError};
use crate::worker::work::Work;

/// The time for the records of a chunk one by one, before the rest goes in pieces.
const ONE_BY_ONE_NS: u64 = 500_000_000;
/// The pieces of that rest.
const PIECES: usize = 16;

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

    /// Maps a chunk, or all of its records that do not fail. The buffer is called through a pointer, so that the search
    /// is compiled once for each program and not for each buffer.
    #[cold]
    #[inline(never)]
    pub fn map(&mut self, chunk: &mut Chunk<'_>, buffer: &mut dyn Emit<J::Key, J::Value>) -> Result<(), Failure> {
        let place = place_of(chunk);
        let is_suspect = self.suspects.iter().any(|suspect| suspect.meets(place));
        if is_suspect || self.set_aside.any_in(place.source, place.range()) {
            return self.map_records(chunk, false, buffer);
        }
        self.begin(chunk);
        self.start_clock();
        if self.work.plan.skip_bad_records == 0 {
            let mapped = self.work.functions.program.map(chunk, &mut &mut *buffer);
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
                self.map_records(chunk, true, buffer)
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

    /// Maps the records of a chunk that are not set aside, one by one or in pieces. `failed`: a call with the whole
    /// chunk has failed without killing this worker.
    fn map_records(
        &mut self,
        chunk: &mut Chunk<'_>,
        failed: bool,
        buffer: &mut dyn Emit<J::Key, J::Value>,
    ) -> Result<(), Failure> {
        let plan = self.work.plan;
        let suspects = if failed { vec![place_of(chunk)] } else { self.suspects.clone() };
        let is_last = self.suspects.len() >= plan.retries as usize;
        let mut one_by_one = OneByOne::new(suspects, is_last, plan.task_timeout.is_some());
        let piece_bytes = chunk.bytes.len() / PIECES;
        let offset = chunk.offset;
        let place = |part: &Range<usize>| Place {
            source: chunk.index,
            offset: offset + part.start as u64,
            bytes: part.len() as u64,
        };
        let mut records = self.records_of(chunk).into_iter().peekable();
        while let Some(mut part) = records.next() {
            let kind = one_by_one.kind(place(&part));
            while kind.is_none()
                && let Some(record) = records.next_if(|record| {
                    record.start == part.end
                        && record.end - part.start <= piece_bytes
                        && one_by_one.kind(place(record)).is_none()
                })
            {
                part.end = record.end;
            }
            let (place, begin_ns) = (place(&part), monotonic_ns());
            let mut part = Chunk { bytes: &mut chunk.bytes[part], offset: place.offset, ..*chunk };
            match kind {
                Some(kind) => {
                    self.map_record(&mut part)?;
                    one_by_one.spent_ns[kind] += monotonic_ns() - begin_ns;
                    self.apart.emit_into(buffer);
                }
                None => self.map_piece(&mut part, buffer)?,
            }
        }
        Ok(())
    }

    /// Returns the records of a chunk, as ranges of its bytes, without those that are set aside.
    fn records_of(&self, chunk: &Chunk<'_>) -> Vec<Range<usize>> {
        let mut scan = Scan::new(chunk.records, chunk.offset, State::default());
        let (mut records, mut at) = (Vec::new(), 0);
        while at < chunk.bytes.len() {
            let (begin, offset) = (at, chunk.offset + at as u64);
            at = chunk.row_end(&mut scan, at);
            if !self.set_aside.any_in(chunk.index, offset..offset + 1) {
                records.push(begin..at);
            }
        }
        records
    }

    /// Maps one record, or lets it be set aside.
    fn map_record(&mut self, record: &mut Chunk<'_>) -> Result<(), Failure> {
        let (work, slot, place) = (self.work, self.slot, place_of(record));
        work.shared.begin_place(slot, place, true);
        if work.plan.task_timeout.is_some() {
            work.shared.start_clock(slot, monotonic_ns());
        }
        let sets_aside = work.plan.skip_bad_records > 0;
        match self.try_map(record) {
            Ok(()) => work.shared.end_place(slot),
            Err(Failed::Returned(error)) if error.verdict == Consequence::Retry => resume_unwind(Box::new(error)),
            Err(Failed::Returned(error)) if error.verdict == Consequence::TooLarge || !sets_aside => {
                return Err(rejected(place, error));
            }
            Err(Failed::Panicked(panic)) if !sets_aside => resume_unwind(panic),
            Err(failed) => self.leave_out(place, &failed),
        }
        Ok(())
    }

    /// Maps several records by one call; if it fails, the records of the piece.
    fn map_piece(&mut self, piece: &mut Chunk<'_>, buffer: &mut dyn Emit<J::Key, J::Value>) -> Result<(), Failure> {
        let sets_aside = self.work.plan.skip_bad_records > 0;
        let before = if sets_aside { piece.bytes.to_vec() } else { Vec::new() };
        self.begin(piece);
        self.start_clock();
        match self.try_map(piece) {
            Ok(()) => self.end(),
            Err(Failed::Returned(error)) if error.verdict == Consequence::Retry => resume_unwind(Box::new(error)),
            Err(_) if sets_aside => {
                self.end();
                piece.bytes.copy_from_slice(&before);
                return self.map_records(piece, true, buffer);
            }
            Err(Failed::Returned(error)) => return Err(self.find(piece, error)),
            Err(Failed::Panicked(panic)) => resume_unwind(panic),
        }
        self.apart.emit_into(buffer);
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
            let end = chunk.row_end(&mut scan, at);
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

/// Decides which records of a chunk are mapped one by one.
///
/// They are while that is cheap. If a call takes a millisecond whatever it is given, a chunk of 1,500 records would
/// take twenty times as long as before, so the search has its time. When that is up, only the last attempt goes on, in
/// the narrowest suspects. In a job with a task time-out it is never up, because each call must be short.
struct OneByOne {
    /// The places to look into, and whether each is of the narrow ones: those in which no other lies.
    suspects: Vec<(Place, bool)>,
    is_last: bool,
    /// The time is never up.
    is_patient: bool,
    /// The time spent in narrow suspects and in the others.
    spent_ns: [u64; 2],
}

impl OneByOne {
    fn new(places: Vec<Place>, is_last: bool, is_patient: bool) -> OneByOne {
        let holds = |outer: Place, inner: Place| {
            inner != outer
                && inner.source == outer.source
                && outer.offset <= inner.offset
                && inner.range().end <= outer.range().end
        };
        let is_narrow = |place: Place| !places.iter().any(|other| holds(place, *other));
        let suspects = places.iter().map(|place| (*place, is_narrow(*place))).collect();
        OneByOne { suspects, is_last, is_patient, spent_ns: [0; 2] }
    }

    /// Returns the index in `spent_ns` for a record that is mapped alone; `None` for one that may be part of a piece.
    fn kind(&self, record: Place) -> Option<usize> {
        let kinds =
            self.suspects.iter().filter(|(place, _)| place.meets(record)).map(|(_, is_narrow)| !is_narrow as usize);
        let has_time =
            |kind: &usize| self.is_patient || self.spent_ns[*kind] < ONE_BY_ONE_NS || self.is_last && *kind == 0;
        kinds.min().filter(has_time)
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

/// Pairs, and items for aggregates, that do not count yet.
struct Apart<K, V> {
    /// One after the other, as they were emitted and added.
    bytes: Vec<u8>,
    /// The sequence: whether the next ones are items, and how many of that kind follow each other.
    runs: Vec<(bool, usize)>,
    /// Adds the first item of some bytes to the aggregate of its key, and returns the rest of the bytes. It is a
    /// function because only [`Emit::add`] knows the type of the items.
    add_first: for<'b> fn(&'b [u8], &mut dyn Emit<K, V>) -> &'b [u8],
    /// The buffer gets only pairs that were written here and read again, so a type that changes in between is detected
    /// before.
    contract: Contract,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Apart<K, V> {
    fn new() -> Apart<K, V> {
        let (bytes, runs) = (Vec::new(), Vec::new());
        Apart { bytes, runs, add_first: |items, _| items, contract: Contract::default(), kind: PhantomData }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    /// Takes a pair, or an item with its key.
    fn take<T: Datum>(&mut self, is_item: bool, key: K::Ref<'_>, value: T::Ref<'_>) {
        self.contract.look::<K, T>(key, value);
        entry::append::<K, T>(0, key, value, &mut self.bytes);
        match self.runs.last_mut() {
            Some((kind, count)) if *kind == is_item => *count += 1,
            _ => self.runs.push((is_item, 1)),
        }
    }

    /// Emits the pairs and adds the items.
    fn emit_into(&mut self, buffer: &mut dyn Emit<K, V>) {
        let mut rest = &self.bytes[..];
        for (is_item, count) in &self.runs {
            for _ in 0..*count {
                if *is_item {
                    rest = (self.add_first)(rest, buffer);
                } else {
                    let pair = entry::read::<K, V>(rest);
                    buffer.emit(pair.key, pair.value);
                    rest = &rest[pair.bytes..];
                }
            }
        }
        self.clear();
    }
}

impl<K: Key, V: Datum> Emit<K, V> for Apart<K, V> {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.take::<V>(false, key, value);
    }

    fn add(&mut self, key: K::Ref<'_>, item: <ItemOf<V> as Datum>::Ref<'_>)
    where
        V: Aggregate,
    {
        // An item that the program cannot add is a fault of this record.
        drop(aggregate::one::<V>(item));
        self.take::<ItemOf<V>>(true, key, item);
        self.add_first = |items, buffer| {
            let pair = entry::read::<K, ItemOf<V>>(items);
            buffer.add(pair.key, pair.value);
            &items[pair.bytes..]
        };
    }
}
