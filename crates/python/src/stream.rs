//! Sends the records of a stage without a shuffle to the program as they are made.
//!
//! Each message is one packet on a socket that all workers of the job share:
//!
//! ```text
//!  | task, 4 | process, 4 | attempt, 4 | records that end here, 4 | flags, 1 | bytes of records |
//!  flags: 1 the last byte ends a record, 2 the task has ended
//! ```
//!
//! The program puts tasks into the order of the input, and takes each of them once:
//! `python/gristmill/engines/machine/streams.py`. A task that is mapped again, because its worker died, is another
//! attempt and sends everything again.
//!
//! A worker that is ahead of the program waits: at most [`AHEAD_BYTES`] of a task are sent before it is the task
//! that the program wants next. The program writes the number of that task into a file in memory, the *turn*.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gristmill_os::descriptor::duplicate;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustix::net::{SendFlags, send};

use crate::batches::{Batch, BatchRow};
use crate::values;

/// A message is sent when it has this many bytes.
const MESSAGE_BYTES: usize = 60 << 10;
/// A larger record is cut. The kernel takes about 200 KiB.
const MESSAGE_BYTES_MAX: usize = 120 << 10;
const HEADER_BYTES: usize = 17;
/// The bytes of a task that are sent before it is its turn.
const AHEAD_BYTES: usize = 1 << 20;
/// The time after which a record is sent although the message is not full.
const FLUSH: Duration = Duration::from_millis(20);
/// How often a worker that is ahead looks whether it is its turn.
const LOOK: Duration = Duration::from_millis(2);

const ENDS_RECORD: u8 = 1;
const ENDS_TASK: u8 = 2;

/// The program's wishes.
#[derive(Clone, Copy, Debug, PartialEq, FromPyObject)]
pub struct Wanted {
    /// The descriptors of the socket and of the turn.
    pub socket: i32,
    pub turn: i32,
    /// Records that are made are sent soon, not when a message is full.
    pub live: bool,
    /// Only the number of records.
    pub count: bool,
    /// The records of a map call are sent when it has ended, because one of them may be set aside.
    pub whole_calls: bool,
}

/// The sending end.
pub struct Stream {
    socket: OwnedFd,
    turn: File,
    wanted: Wanted,
    attempts: AtomicU32,
}

/// The records of a worker's task that are not sent.
#[derive(Default)]
struct Unsent {
    task: Option<usize>,
    attempt: u32,
    records: u32,
    bytes: Vec<u8>,
    sent_bytes: usize,
    /// A map call has failed: the job ends, or the worker does. What it makes to find the record is not sent.
    is_over: bool,
    has_clock: bool,
}

thread_local! {
    static UNSENT: RefCell<Arc<Mutex<Unsent>>> = RefCell::default();
}

impl Stream {
    pub fn new(wanted: Wanted) -> io::Result<Arc<Stream>> {
        let (socket, turn) = (duplicate(wanted.socket)?, duplicate(wanted.turn)?);
        Ok(Arc::new(Stream { socket, turn: turn.into(), wanted, attempts: AtomicU32::new(0) }))
    }

    /// Sends the records of a map call for `task`.
    ///
    /// # Errors
    /// A function fails, or a record cannot be pickled.
    pub fn add(self: &Arc<Stream>, task: usize, outputs: &Bound<'_, PyAny>) -> PyResult<()> {
        let unsent = UNSENT.with_borrow(Arc::clone);
        let mut began = lock(&unsent);
        self.begin(&mut began, task);
        if self.wanted.live && !began.has_clock {
            began.has_clock = true;
            self.start_clock(unsent.clone());
        }
        let is_over = began.is_over;
        drop(began);
        let mut apart = Unsent::default();
        let mut add = |output: &Bound<'_, PyAny>| {
            if self.wanted.whole_calls || is_over {
                return self.append(output, &mut apart);
            }
            let mut unsent = lock(&unsent);
            self.append(output, &mut unsent)?;
            if unsent.bytes.len() >= MESSAGE_BYTES {
                self.send(&mut unsent, 0);
            }
            Ok(())
        };
        // A list need not be asked for an iterator.
        let added = match outputs.cast_exact::<PyList>() {
            Ok(list) => list.iter().try_for_each(|output| add(&output)),
            Err(_) => outputs.try_iter().and_then(|mut outputs| outputs.try_for_each(|output| add(&output?))),
        };
        let mut unsent = lock(&unsent);
        if added.is_err() && !self.wanted.whole_calls {
            // The records before the one that failed count.
            if !is_over && unsent.records > 0 {
                self.send(&mut unsent, 0);
            }
            unsent.is_over = true;
        } else if added.is_ok() && self.wanted.whole_calls {
            unsent.records += apart.records;
            unsent.bytes.extend_from_slice(&apart.bytes);
            if unsent.bytes.len() >= MESSAGE_BYTES {
                self.send(&mut unsent, 0);
            }
        }
        added
    }

    /// Says that a task has ended.
    pub fn end_task(&self, task: usize) {
        let unsent = UNSENT.with_borrow(Arc::clone);
        let mut unsent = lock(&unsent);
        self.begin(&mut unsent, task);
        if !unsent.is_over {
            self.send(&mut unsent, ENDS_TASK);
        }
        unsent.task = None;
    }

    /// Begins an attempt, if `task` is not the one that this worker maps already.
    fn begin(&self, unsent: &mut Unsent, task: usize) {
        if unsent.task != Some(task) {
            let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
            let Unsent { is_over, has_clock, .. } = *unsent;
            *unsent = Unsent { task: Some(task), attempt, is_over, has_clock, ..Unsent::default() };
        }
    }

    /// Appends an output: a record, or a batch of them.
    fn append(&self, output: &Bound<'_, PyAny>, to: &mut Unsent) -> PyResult<()> {
        if let Ok(batch) = output.cast_exact::<Batch>() {
            let (rows, part) = batch.get().records(batch.py())?;
            to.records += rows as u32;
            if !self.wanted.count {
                (0..rows).try_for_each(|number| values::encode_row(BatchRow { part: &part, number }, &mut to.bytes))?;
            }
            return Ok(());
        }
        if !self.wanted.count {
            let before = to.bytes.len();
            values::encode(output, &mut to.bytes).inspect_err(|_| to.bytes.truncate(before))?;
        }
        to.records += 1;
        Ok(())
    }

    /// Sends everything that is not sent.
    fn send(&self, unsent: &mut Unsent, flags: u8) {
        let Some(task) = unsent.task else { return };
        let mut message = Vec::with_capacity(HEADER_BYTES + unsent.bytes.len().min(MESSAGE_BYTES_MAX));
        let mut rest = &unsent.bytes[..];
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MESSAGE_BYTES_MAX));
            rest = after;
            let is_last = rest.is_empty();
            let [records, flags] = if is_last { [unsent.records, u32::from(flags | ENDS_RECORD)] } else { [0, 0] };
            message.clear();
            for number in [task as u32, std::process::id(), unsent.attempt, records] {
                message.extend_from_slice(&number.to_le_bytes());
            }
            message.push(flags as u8);
            message.extend_from_slice(piece);
            while unsent.sent_bytes > AHEAD_BYTES && self.is_ahead(task) {
                std::thread::sleep(LOOK);
            }
            // If the program does not listen any more, it ends the job.
            while let Err(rustix::io::Errno::INTR) = send(&self.socket, &message, SendFlags::NOSIGNAL) {}
            unsent.sent_bytes += piece.len();
            if is_last {
                break;
            }
        }
        unsent.bytes.clear();
        unsent.records = 0;
    }

    /// Returns whether the program wants another task before this one.
    fn is_ahead(&self, task: usize) -> bool {
        let mut turn = [0; 8];
        self.turn.read_exact_at(&mut turn, 0).is_ok() && u64::from_le_bytes(turn) < task as u64
    }

    /// Sends records whose message does not fill while the next one is made.
    fn start_clock(self: &Arc<Stream>, unsent: Arc<Mutex<Unsent>>) {
        let stream = self.clone();
        let clock = move || {
            loop {
                std::thread::sleep(FLUSH);
                // The worker is at it itself otherwise.
                if let Ok(mut unsent) = unsent.try_lock()
                    && unsent.records > 0
                {
                    stream.send(&mut unsent, 0);
                }
            }
        };
        // Without it, records come when a message is full.
        drop(std::thread::Builder::new().name("gristmill clock".into()).spawn(clock));
    }
}

fn lock(unsent: &Mutex<Unsent>) -> MutexGuard<'_, Unsent> {
    unsent.lock().expect("no thread panics while it adds a record")
}
