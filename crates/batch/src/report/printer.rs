//! The output of programs on this process's own streams, in the order that the user wants.
//!
//! ```text
//!                            turn of its job              room
//!  output of an ended job  ------------------> printing ---------> standard output, standard error
//!  (--order list) waits in `held`                ^
//!  lines of running ones   ----------------------+ when nothing else is being printed
//!  (--live) wait in their file
//! ```
//!
//! It prints in pieces, and only while the stream has room, so that the queue can go on with its other work while
//! nobody reads. All that waits is in files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use crate::queue::{BatchJob, Queue, State};

use super::live::Live;
use super::tagged::Tagged;
use super::written::{Printed, Written};
use crate::program::capture::Capture;
use crate::program::ready::STREAMS;
use crate::program::running::Running;

/// The order in which outputs are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the jobs end
    #[default]
    End,
    /// In the order of the list
    List,
}

/// How outputs are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub order: Order,
    /// Each line as soon as it is written, with a tag.
    pub is_live: bool,
    /// On standard error, because standard output has something else.
    pub is_aside: bool,
    /// Outputs that may wait for an earlier job's: each is an open file or two.
    pub held_max: usize,
}

/// The outputs that wait for a reader from which on no further program begins: each is an open file.
pub const UNPRINTED_MAX: usize = 16;
/// The time between two looks whether a reader that does not read has made room.
const PRINT: Duration = Duration::from_millis(5);

/// Something to be printed.
struct Printout {
    /// The job whose output this is; `None` for a line about it.
    output_of: Option<usize>,
    written: Written,
}

/// Prints outputs.
pub struct Printer {
    style: Style,
    printing: VecDeque<Printout>,
    /// Outputs that wait for those of earlier jobs, by job.
    held: BTreeMap<usize, Vec<Printout>>,
    /// The jobs whose output was not printed, and will not be.
    lost: BTreeSet<usize>,
    /// The first job that has not ended.
    turn: usize,
    /// The lines of running programs, by job.
    live: BTreeMap<usize, [Tagged; STREAMS]>,
    /// When to look again whether there is room.
    print_at: Instant,
}

impl Printer {
    pub fn new(style: Style) -> Printer {
        Printer {
            style,
            printing: VecDeque::new(),
            held: BTreeMap::new(),
            lost: BTreeSet::new(),
            turn: 0,
            live: BTreeMap::new(),
            print_at: Instant::now(),
        }
    }

    /// A program has begun.
    pub fn begin(&mut self, number: usize, job: &BatchJob) {
        if self.style.is_live {
            self.live.insert(number, [0; STREAMS].map(|_| Tagged::of(number, job)));
        }
    }

    /// Takes the output of an ended program: standard output as such, or on standard error, and the rest on standard
    /// error. Output that is kept in a folder is not printed, unless as lines.
    pub fn end(&mut self, job: usize, capture: Capture) -> io::Result<()> {
        let is_named = capture.folder.is_some();
        let mut lines = self.live.remove(&job).map(Vec::from).unwrap_or_default().into_iter();
        for (stream, file) in capture.into_files().into_iter().enumerate() {
            let (lines, is_error) = (lines.next(), self.is_error(stream));
            match (file, lines) {
                (Some(file), Some(lines)) => self.add_part(job, true, Written::lines(lines, file, is_error)),
                (Some(file), None) if !is_named => self.add_part(job, true, Written::file(file, is_error)?),
                _ => {}
            }
        }
        Ok(())
    }

    fn is_error(&self, stream: usize) -> bool {
        stream > 0 || self.style.is_aside
    }

    /// Prints a line about a job in its turn.
    pub fn add(&mut self, job: usize, line: Written) {
        self.add_part(job, false, line);
    }

    fn add_part(&mut self, job: usize, is_output: bool, written: Written) {
        let part = Printout { output_of: is_output.then_some(job), written };
        match self.style.order {
            Order::List if job > self.turn => self.held.entry(job).or_default().push(part),
            Order::End | Order::List => self.printing.push_back(part),
        }
    }

    /// Looks which jobs will write nothing more, so that the outputs behind theirs have their turn.
    pub fn see(&mut self, queue: &Queue) {
        if self.style.order == Order::End {
            return;
        }
        let is_over = |job: usize| match queue.states().get(job) {
            Some(State::Ended(_) | State::Skipped(_)) => true,
            // It does not begin any more.
            Some(State::Waiting) => queue.is_over() || queue.is_stopped() && !queue.runs_anyway(job),
            Some(State::Running) | None => false,
        };
        while is_over(self.turn) {
            self.turn += 1;
            self.printing.extend(self.held.remove(&self.turn).into_iter().flatten());
        }
    }

    /// Returns false if so much waits that no further program may begin.
    ///
    /// If nothing runs, the held outputs wait for a job that has not begun. So a program may always begin then, or the
    /// queue would stand still.
    pub fn has_room(&self, runs_any: bool) -> bool {
        self.printing.len() < UNPRINTED_MAX && (self.held.len() <= self.style.held_max || !runs_any)
    }

    /// When there may be something to print.
    pub fn next(&self) -> Option<Instant> {
        (!self.printing.is_empty()).then_some(self.print_at)
    }

    /// Discards all output that has not been printed.
    pub fn clear(&mut self) {
        let held = std::mem::take(&mut self.held).into_values().flatten();
        self.lost.extend(self.printing.drain(..).chain(held).filter_map(|part| part.output_of));
        self.live.clear();
    }

    /// Returns the jobs whose output was lost since the last call.
    pub fn take_lost(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.lost)
    }

    /// Prints as far as there is room. After an error, the rest of the same output is left out. `is_alone` says that
    /// nobody is left who could tell that the user wants to wait no longer, so what has no room is left out too.
    pub fn print_some(&mut self, running: &BTreeMap<usize, Running>, table: &Live, is_alone: bool) -> io::Result<()> {
        loop {
            if self.printing.is_empty() {
                self.take_lines(running)?;
            }
            let Some(mut part) = self.printing.pop_front() else { return Ok(()) };
            match table.aside(|| part.written.print_some()) {
                Ok(Printed::All) => {}
                Ok(Printed::NoRoom) if is_alone => self.lost.extend(part.output_of),
                // Somebody who stops reading has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
                Err(error) => {
                    self.lost.extend(part.output_of);
                    return Err(error);
                }
                Ok(printed) => {
                    self.printing.push_front(part);
                    self.print_at = Instant::now() + if printed == Printed::NoRoom { PRINT } else { Duration::ZERO };
                    return Ok(());
                }
            }
        }
    }

    /// Takes new lines of each running program whose turn it is.
    fn take_lines(&mut self, running: &BTreeMap<usize, Running>) -> io::Result<()> {
        let Printer { style, turn, live, printing, .. } = self;
        for (job, lines) in live {
            if style.order == Order::List && *job > *turn {
                break;
            }
            let Some(program) = running.get(job) else { continue };
            for (stream, lines) in lines.iter_mut().enumerate() {
                let from = &program.capture.streams()[stream];
                let Some(file) = from.file().filter(|_| lines.read_bytes() < from.kept_bytes()) else { continue };
                let text = lines.next(file)?;
                if !text.is_empty() {
                    let written = Written::text(text, stream > 0 || style.is_aside);
                    printing.push_back(Printout { output_of: Some(*job), written });
                }
            }
        }
        Ok(())
    }
}
