//! Runs a stage: makes the engine's job of what Python describes, and delivers its result.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill::files::Syntax;
use gristmill::options::Options;
use gristmill::stats::Progress;
use gristmill::types::Ending;
use gristmill::{Bytes, Error, Input, Job, MapReduce, Order, Result, Summary};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::Array;
use crate::exceptions::Fault;
use crate::folds::{End, Fold};
use crate::frames::{Blocks, Frames};
use crate::program::{Form, Records, StageProgram, Text, Typed};
use crate::stream::{Stream, Wanted};
use crate::timelines;

/// The result of a stage that another stage reads.
#[pyclass(frozen)]
pub struct Made {
    input: Input,
    end: End,
    form: Form,
}

/// An input of a stage.
#[derive(FromPyObject)]
pub enum Side<'py> {
    /// Files of lines, as text or as bytes.
    Files(bool, Vec<PathBuf>),
    /// Files of CSV: the byte between fields, the most bytes of a row, and the files.
    Rows(u8, usize, Vec<PathBuf>),
    /// Objects that the workers have: their number, and how many of them a task maps.
    Places(u64, u64),
    Made(Bound<'py, Made>),
}

impl Side<'_> {
    fn row_bytes_max(&self) -> Option<usize> {
        if let Side::Rows(_, bytes, _) = self { Some(*bytes) } else { None }
    }
}

/// A stage as Python asks for it: see `Request` in `python/gristmill/engines/machine/requests.py`.
#[derive(FromPyObject)]
pub struct Request<'py> {
    sides: Vec<Side<'py>>,
    functions: Py<PyAny>,
    end: End,
    form: Form,
    /// The k of a top-k over counts.
    limit: Option<usize>,
    options: Vec<(String, String)>,
    arrays: Vec<PyRef<'py, Array>>,
    pub stream: Option<Wanted>,
    skip: bool,
    deadline: Option<f64>,
    timeline: bool,
    pub pipe: i32,
    /// The pairs of the result that earlier runs of the stage have sent.
    pub sent: u64,
    pub keep: bool,
}

/// A stage as the engine runs it.
pub struct Stage {
    program: StageProgram,
    form: Form,
    input: Input,
    /// The records that are mapped together, if they are places.
    together: Option<u64>,
    /// The most bytes of a row of CSV.
    row_bytes_max: Option<usize>,
    limit: Option<usize>,
    options: Options,
    deadline: Option<Duration>,
    timeline: bool,
}

/// The greatest number of records that the engine sets aside.
const BAD_RECORDS_MAX: u32 = 1_000_000;
/// The greatest number of bytes that stand for objects.
const PLACES_MAX: u64 = 16 << 20;

impl Stage {
    /// Makes a stage of what Python asks for.
    pub fn new(request: Request<'_>, stream: Option<Arc<Stream>>) -> Result<Stage> {
        let Request { end, form, functions, limit, skip, timeline, .. } = request;
        let mut options = Options::default();
        for (name, value) in request.options {
            options.set(&name, value)?;
        }
        let row_bytes_max = request.sides.iter().filter_map(Side::row_bytes_max).max();
        let (input, inputs, together) = Stage::input(request.sides, skip)?;
        let arrays = request.arrays.iter().map(|array| array.0.clone()).collect();
        let program = StageProgram { end, inputs, functions, arrays, stream, skip };
        let deadline = request.deadline.map(Duration::from_secs_f64);
        Ok(Stage { program, form, input, together, row_bytes_max, limit, options, deadline, timeline })
    }

    /// Makes an input of its sides.
    fn input(sides: Vec<Side<'_>>, skip: bool) -> Result<(Input, Vec<Records>, Option<u64>)> {
        let (mut inputs, mut kinds, mut together) = (Vec::new(), Vec::new(), None);
        for (tag, side) in sides.into_iter().enumerate() {
            let (input, kind) = match side {
                Side::Files(is_text, paths) => {
                    let input = Input::paths(paths).records(gristmill::Records::Lines);
                    (input, if is_text { Records::Text } else { Records::Lines })
                }
                Side::Rows(delimiter, _, paths) => {
                    let syntax = Syntax { delimiter, ..Syntax::default() };
                    (Input::paths(paths).records(gristmill::Records::Csv(syntax)), Records::Rows)
                }
                Side::Places(count, batch) => {
                    // A record that is set aside must be one object.
                    let each = if skip { 1 } else { count.div_ceil(PLACES_MAX).max(1) };
                    together = Some((batch / each).max(1));
                    let bytes = vec![0; count.div_ceil(each) as usize];
                    let input = Input::bytes("records of the program", &bytes)?;
                    (input.records(gristmill::Records::Fixed(1)), Records::Places { each, count })
                }
                Side::Made(made) => {
                    let made = made.get();
                    (made.input.clone(), Records::Made(made.end, made.form))
                }
            };
            inputs.push(input.tagged(tag as u32));
            kinds.push(kind);
        }
        Ok((inputs.into_iter().reduce(Input::chain).expect("a stage has an input"), kinds, together))
    }

    /// Runs the stage. Its result goes to `frames` in order, or becomes the input of other stages.
    pub fn run(self, frames: &Frames, keep: bool) -> Result<(Option<Made>, Summary)> {
        if let End::Words {} | End::Lines { .. } = self.program.end {
            let text = Text { lines: self.program.end != End::Words {} };
            return self.run_typed(Job::new(&text, self.input.clone()), frames, keep);
        }
        if let End::Groups { .. } | End::Columns { .. } | End::Join(_) = self.program.end {
            let program = self.typed::<Bytes>();
            let job = Job::new(&program, self.input.clone())
                .reduce_to::<Bytes, Bytes>(|key, values, emit| self.program.reduce(key, values, emit));
            return self.run_typed(job, frames, keep);
        }
        match self.form {
            Form::Count => self.run_form::<u64>(frames, keep),
            Form::Int => self.run_form::<(i64, u64)>(frames, keep),
            Form::Float => self.run_form::<(f64, u64)>(frames, keep),
            Form::CountShown => self.run_form::<(u64, Bytes)>(frames, keep),
            Form::IntShown => self.run_form::<((i64, u64), Bytes)>(frames, keep),
            Form::FloatShown => self.run_form::<((f64, u64), Bytes)>(frames, keep),
            Form::Several => self.run_form::<(Bytes, Bytes)>(frames, keep),
            Form::Any => self.run_form::<Bytes>(frames, keep),
        }
    }

    fn typed<V: Fold>(&self) -> Typed<'_, V> {
        Typed { program: &self.program, form: PhantomData }
    }

    fn run_form<V: Fold>(&self, frames: &Frames, keep: bool) -> Result<(Option<Made>, Summary)> {
        let program = self.typed::<V>();
        self.run_typed(Job::new(&program, self.input.clone()), frames, keep)
    }

    fn run_typed<'j, J: MapReduce, E: Ending<J, Key = Bytes>>(
        &'j self,
        job: Job<'j, J, E>,
        frames: &'j Frames,
        keep: bool,
    ) -> Result<(Option<Made>, Summary)>
    where
        E::Value: Fold,
    {
        let end = self.program.end;
        // If a Python function crashes, the pairs that native reducers have already reduced are kept.
        let apart = end.reduces_natively() && !matches!(end, End::Words {} | End::Lines { .. } | End::Stream {});
        let mut job = job.reduce_apart(apart).options(&self.options).timeline(self.timeline);
        if self.program.stream.is_some() {
            // A sample would call the functions, and what they make would be sent.
            job = job.in_order(true).sample(false);
        }
        for array in &self.program.arrays {
            job = array.written_by(job);
        }
        if self.program.skip {
            job = job.skip_bad_records(BAD_RECORDS_MAX);
        }
        if let Some(limit) = self.deadline {
            job = job.deadline(limit);
        }
        if let Some(bytes) = self.row_bytes_max {
            job = job.record_bytes_max(bytes);
        }
        if let Some(together) = self.together {
            job = job.split_bytes(together).chunk_bytes(together as usize);
        }
        job = match (end, self.limit) {
            (_, Some(limit)) => job.top(limit),
            (End::Top { count }, None) => job.top(count).order(Order::ByKey),
            _ => job,
        };
        job = job.on_progress(|now| tell(now, frames)).on_news(|news| _ = frames.send(b'W', news.as_bytes()));
        if keep {
            let (input, summary) = job.run_to_input()?;
            return Ok((Some(Made { input, end, form: self.form }), summary));
        }
        let mut blocks = Blocks::new(frames);
        let mut sent = Ok(());
        let summary = job.run_each(|key, value| {
            sent = blocks.add(|block| E::Value::append(end, key, value, block));
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        sent.and_then(|()| blocks.flush()).map_err(|_| Error::Cancelled)?;
        Ok((None, summary))
    }
}

fn tell(now: Progress, frames: &Frames) {
    let Progress { done_bytes, total_bytes, workers, deaths, round, finishing, .. } = now;
    let text = format!(
        r#"{{"done":{done_bytes},"total":{total_bytes},"workers":{workers},"deaths":{deaths},"round":{round},"finishing":{finishing}}}"#
    );
    // If nobody listens, the next block finds out.
    _ = frames.send(b'P', text.as_bytes());
}

/// Describes an error of the engine to Python: its cause, text and place, and the number of pairs that were sent
/// before.
pub fn describe<'py>(py: Python<'py>, error: &Error, sent: u64) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("sent", sent)?;
    told.set_item("text", error.to_string())?;
    let fault = match error {
        Error::Rejected { path, offset, line, why, code } => {
            told.set_item("place", (path, line, offset))?;
            told.set_item("why", why)?;
            told.set_item("code", code)?;
            Fault::Input
        }
        Error::Program { why, code, .. } => {
            told.set_item("why", why)?;
            told.set_item("code", code)?;
            Fault::Other
        }
        Error::RecordFailed { path, offset, line, attempts, .. } => {
            told.set_item("place", (path, line, offset))?;
            told.set_item("attempts", attempts)?;
            Fault::Died
        }
        Error::QuoteOpen { path, offset, line, .. } => {
            told.set_item("place", (path, line, offset))?;
            Fault::Input
        }
        Error::TaskFailed { attempts, .. } | Error::ReduceFailed { attempts, .. } => {
            told.set_item("attempts", attempts)?;
            Fault::Died
        }
        Error::TooManyDeaths { .. } | Error::TooManyFailures { .. } => Fault::Died,
        Error::Input { .. }
        | Error::Read { .. }
        | Error::NoInput { .. }
        | Error::Compressed { .. }
        | Error::Truncated { .. }
        | Error::RecordTooLong { .. }
        | Error::TooManyBadRecords { .. } => Fault::Input,
        Error::MemoryRefused { .. }
        | Error::TooLarge { .. }
        | Error::Spill { .. }
        | Error::SpillDamaged { .. }
        | Error::Spool { .. }
        | Error::Deadline { .. } => Fault::Resource,
        Error::Cancelled => Fault::Cancelled,
        Error::Setting(_) => Fault::Setting,
        _ => Fault::Other,
    };
    told.set_item("fault", fault)?;
    Ok(told)
}

/// Tells Python how a stage has run.
pub fn summarise<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("seconds", summary.wall_ns as f64 / 1e9)?;
    told.set_item("input_bytes", summary.input_bytes)?;
    told.set_item("memory_bytes", summary.memory_bytes)?;
    told.set_item("tasks", summary.tasks)?;
    told.set_item("workers", summary.workers.len())?;
    told.set_item("pairs", summary.pairs)?;
    told.set_item("deaths", &summary.deaths)?;
    told.set_item("rounds", summary.rounds)?;
    let bad = summary.bad_records.iter().map(|bad| (&bad.path, bad.line, bad.offset, &bad.record[..], &bad.cause));
    told.set_item("bad_records", bad.collect::<Vec<_>>())?;
    told.set_item("timeline", summary.timeline.as_ref().map(timelines::told))?;
    Ok(told)
}

/// Opens a pipe a second time.
pub fn pipe(descriptor: i32) -> io::Result<File> {
    // Through /proc, because taking a number for a descriptor is unsafe.
    File::options().write(true).open(format!("/proc/self/fd/{descriptor}"))
}
