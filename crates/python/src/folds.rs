//! How a shuffle ends, and the forms in which its values travel: counts, numbers that combine, or any value as bytes.
//!
//! Known reducers combine numbers natively. What a job meets is known only when it runs, so each form holds as long as
//! all that the job meets fits it. Something else ends the job with [`Stop::Unfit`], and it runs again with a form that
//! holds more: see `python/gristmill/engines/machine/attempts.py`.

use std::collections::BinaryHeap;

use gristmill::{Bytes, Datum, Emit, ProgramError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batches::{Batch, BatchRow};
use crate::exceptions::{Code, NoOrder};
use crate::groups::{self, Grouped, Partitions};
use crate::keys::{self, Types};
use crate::outputs::{Output, Stop};
use crate::reducers::{By, Partial, Reducers};
use crate::values::{self, Kind, Shown};

/// How a stage ends.
#[pyclass(eq, from_py_object)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The words of text, counted without Python.
    Words {},
    /// The lines of text, without Python: with their counts, or only which there are.
    Lines {
        distinct: bool,
    },
    Count {},
    Distinct {},
    Sum {},
    Mean {},
    Min {},
    Max {},
    /// Several reducers at once.
    Several(Reducers),
    /// A Python function makes records of each key and its values, which it wants as an array of NumPy or as a list.
    Groups {
        arrays: bool,
    },
    /// The same for whole keys and numbers in columns. Pairs are blocks of rows, and their keys numbers of partitions.
    Columns {
        arrays: bool,
        partitions: Partitions,
    },
    /// The value of an input is for the left side if its tag is 0.
    Join(How),
    Sort {
        descending: bool,
    },
    /// The least keys of sorting, descending, and records behind them.
    Top {
        count: usize,
    },
    /// No shuffle: records in the order of the input.
    Gather {},
    /// The same, but the records do not become pairs: they are sent as they are made.
    Stream {},
}

impl End {
    /// Whether reducing calls no function in Python.
    pub fn reduces_natively(self) -> bool {
        !matches!(self, End::Groups { .. } | End::Columns { .. })
    }

    /// Returns the reducers of [`End::Several`].
    fn several(&self) -> &Reducers {
        let End::Several(reducers) = self else { unreachable!("the values have another form") };
        reducers
    }

    /// Returns the reducer of numbers.
    #[inline(always)]
    fn by(self) -> By {
        match self {
            End::Min {} => By::Min,
            End::Max {} => By::Max,
            End::Mean {} => By::Mean,
            _ => By::Sum,
        }
    }
}

/// Which keys of a join are in its result.
#[pyclass(frozen, eq, from_py_object, rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Inner,
    Left,
    Right,
    Full,
    Anti,
}

/// Returns the error for a value that does not fit the form.
pub fn unfit() -> ProgramError {
    ProgramError::new("the values need another form").code(Code::Unfit as i32)
}

/// Where pairs are built.
#[derive(Default)]
pub struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
    state: Vec<u8>,
}

/// The chunk that outputs come from.
#[derive(Clone, Copy)]
pub struct Origin {
    pub tag: u32,
    pub source: usize,
    pub offset: u64,
}

/// A form of values.
pub trait Fold: Datum + Sized {
    /// Whether values combine.
    const COMBINES: bool;

    fn combine(end: End, a: Self::Owned, b: Self::Owned) -> Self::Owned;

    /// Returns the pair that an output of the Python functions stands for.
    fn pair<'b>(
        end: End,
        tag: u32,
        output: &impl Output,
        buffers: &'b mut Buffers,
    ) -> Result<(&'b [u8], Self::Ref<'b>), Stop>;

    /// Emits the pairs that the outputs of a chunk stand for.
    fn emit(
        end: End,
        origin: Origin,
        outputs: &Bound<'_, PyAny>,
        out: &mut impl Emit<Bytes, Self>,
    ) -> Result<(), Stop> {
        emit_pairs::<Self>(end, origin.tag, outputs, out)
    }

    /// Emits the pairs that the rows of a batch stand for.
    fn emit_batch(
        end: End,
        tag: u32,
        batch: &Bound<'_, Batch>,
        buffers: &mut Buffers,
        out: &mut impl Emit<Bytes, Self>,
    ) -> Result<(), Stop> {
        let (rows, records) = batch.get().records(batch.py())?;
        for number in 0..rows {
            let (key, value) = Self::pair(end, tag, &BatchRow { part: &records, number }, buffers)?;
            out.emit(key, value);
        }
        Ok(())
    }

    /// Emits a pair of [`Bytes`].
    fn emit_bytes(_: &[u8], _: &[u8], _: &mut impl Emit<Bytes, Self>) {
        unreachable!("the values have another form")
    }

    /// Appends the records that a pair of the result stands for.
    fn append(end: End, key: &[u8], value: Self::Ref<'_>, to: &mut Vec<u8>);
}

/// Emits a pair for each output, or for each row of one that is a batch.
fn emit_pairs<V: Fold>(
    end: End,
    tag: u32,
    outputs: &Bound<'_, PyAny>,
    out: &mut impl Emit<Bytes, V>,
) -> Result<(), Stop> {
    let mut buffers = Buffers::default();
    let mut emit = |output: &Bound<'_, PyAny>| {
        if let Ok(batch) = output.cast_exact::<Batch>() {
            return V::emit_batch(end, tag, batch, &mut buffers, out);
        }
        let (key, value) = V::pair(end, tag, output, &mut buffers)?;
        out.emit(key, value);
        Ok(())
    };
    // A list need not be asked for an iterator.
    match outputs.cast_exact::<PyList>() {
        Ok(list) => list.iter().try_for_each(|output| emit(&output)),
        Err(_) => outputs.try_iter()?.try_for_each(|output| emit(&output?)),
    }
}

/// Writes a key to its buffer. Returns the types of its numbers.
fn key(key: &impl Output, buffers: &mut Buffers) -> Result<Types, Stop> {
    let mut types = Types::default();
    buffers.key.clear();
    key.encode_key(&mut types, &mut buffers.key)?;
    Ok(types)
}

/// Writes a key without a header: one whose numbers are all ints.
fn bare_key(of: &impl Output, buffers: &mut Buffers) -> Result<(), Stop> {
    if key(of, buffers)?.are_ints() { Ok(()) } else { Err(Stop::Unfit(Code::UnfitKey)) }
}

/// Writes a key, and its header behind what is in the buffer of the value.
fn key_and_header(of: &impl Output, buffers: &mut Buffers) -> Result<(), Stop> {
    let types = key(of, buffers)?;
    Ok(values::encode_header(types, |to| of.encode(to), &mut buffers.value)?)
}

/// Numbers that combine natively: the values of a form.
pub trait Number: Datum<Owned = Self> + for<'a> Datum<Ref<'a> = Self> + Copy {
    /// Calls `with` with the key and the number of an output.
    fn with_key<O: Output, T>(output: &O, with: impl FnOnce(&O, Self) -> Result<T, Stop>) -> Result<T, Stop>;

    fn combine(end: End, a: Self, b: Self) -> Self;

    /// Appends the value of the pair that a number of the result stands for.
    fn append(self, end: End, to: &mut Vec<u8>);
}

/// Counts.
impl Number for u64 {
    fn with_key<O: Output, T>(output: &O, with: impl FnOnce(&O, u64) -> Result<T, Stop>) -> Result<T, Stop> {
        with(output, 1)
    }

    #[inline(always)]
    fn combine(_: End, a: u64, b: u64) -> u64 {
        a + b
    }

    fn append(self, _: End, to: &mut Vec<u8>) {
        values::encode_i64(self as i64, to);
    }
}

/// The sum, least or greatest of ints, and their number.
impl Number for (i64, u64) {
    fn with_key<O: Output, T>(output: &O, with: impl FnOnce(&O, Self) -> Result<T, Stop>) -> Result<T, Stop> {
        output.with_pair(|key, value| with(key, (value.int().ok_or(Stop::Unfit(Code::Unfit))?, 1)))
    }

    #[inline(always)]
    fn combine(end: End, a: (i64, u64), b: (i64, u64)) -> (i64, u64) {
        (end.by().ints(a.0, b.0).unwrap_or_else(|| unfit().throw()), a.1 + b.1)
    }

    fn append(self, end: End, to: &mut Vec<u8>) {
        end.by().append_int(self.0, self.1, to);
    }
}

/// The same of floats.
impl Number for (f64, u64) {
    fn with_key<O: Output, T>(output: &O, with: impl FnOnce(&O, Self) -> Result<T, Stop>) -> Result<T, Stop> {
        output.with_pair(|key, value| with(key, (value.float().ok_or(Stop::Unfit(Code::Unfit))?, 1)))
    }

    #[inline(always)]
    fn combine(end: End, a: (f64, u64), b: (f64, u64)) -> (f64, u64) {
        (end.by().floats(a.0, b.0), a.1 + b.1)
    }

    fn append(self, end: End, to: &mut Vec<u8>) {
        end.by().append_float(self.0, self.1, to);
    }
}

/// Numbers of keys that need no header: plain ones without floats and bools.
impl<N: Number> Fold for N {
    const COMBINES: bool = true;

    #[inline(always)]
    fn combine(end: End, a: N, b: N) -> N {
        N::combine(end, a, b)
    }

    fn pair<'b>(_: End, _: u32, output: &impl Output, buffers: &'b mut Buffers) -> Result<(&'b [u8], N), Stop> {
        let number = N::with_key(output, |key, number| bare_key(key, buffers).map(|()| number))?;
        Ok((&buffers.key, number))
    }

    fn append(end: End, key: &[u8], number: N, to: &mut Vec<u8>) {
        match end {
            End::Distinct {} => return values::encode_key(key, Types::default(), to),
            End::Lines { distinct: true } => return values::encode_text(key, to),
            _ => values::begin_tuple(2, to),
        }
        match end {
            End::Words {} | End::Lines { .. } => values::encode_text(key, to),
            _ => values::encode_key(key, Types::default(), to),
        }
        number.append(end, to);
    }
}

/// Numbers of any keys, with the headers of these.
impl<N: Number> Fold for (N, Bytes) {
    const COMBINES: bool = true;

    fn combine(end: End, a: (N, Vec<u8>), b: (N, Vec<u8>)) -> (N, Vec<u8>) {
        (N::combine(end, a.0, b.0), values::merged(a.1, b.1))
    }

    fn pair<'b>(
        _: End,
        _: u32,
        output: &impl Output,
        buffers: &'b mut Buffers,
    ) -> Result<(&'b [u8], (N, &'b [u8])), Stop> {
        buffers.value.clear();
        let number = N::with_key(output, |key, number| key_and_header(key, buffers).map(|()| number))?;
        Ok((&buffers.key, (number, &buffers.value)))
    }

    fn append(end: End, key: &[u8], (number, mut header): (N, &[u8]), to: &mut Vec<u8>) {
        let mut shown = Shown::default();
        shown.see(&mut header);
        if matches!(end, End::Distinct {}) {
            return shown.append(key, to);
        }
        values::begin_tuple(2, to);
        shown.append(key, to);
        number.append(end, to);
    }
}

/// States of several reducers, with the headers of keys.
impl Fold for (Bytes, Bytes) {
    const COMBINES: bool = true;

    fn combine(end: End, mut a: (Vec<u8>, Vec<u8>), b: (Vec<u8>, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        end.several().merge(&mut a.0, &b.0).unwrap_or_else(|| unfit().throw());
        (a.0, values::merged(a.1, b.1))
    }

    fn pair<'b>(
        end: End,
        _: u32,
        output: &impl Output,
        buffers: &'b mut Buffers,
    ) -> Result<(&'b [u8], (&'b [u8], &'b [u8])), Stop> {
        buffers.value.clear();
        buffers.state.clear();
        output.with_pair(|key, value| {
            let partial = |by, field: Option<(u8, u8)>| match field {
                None => partial(by, value),
                Some((at, of)) => value.with_field(at.into(), of.into(), |field| partial(by, field))?,
            };
            end.several().begin(partial, &mut buffers.state).ok_or(Stop::Unfit(Code::Unfit))?;
            key_and_header(key, buffers)
        })?;
        Ok((&buffers.key, (&buffers.state, &buffers.value)))
    }

    fn append(end: End, key: &[u8], (state, mut header): (&[u8], &[u8]), to: &mut Vec<u8>) {
        let mut shown = Shown::default();
        shown.see(&mut header);
        values::begin_tuple(2, to);
        shown.append(key, to);
        end.several().append(state, to);
    }
}

/// Returns what a value is for a reducer.
fn partial(by: By, value: &impl Output) -> Option<Partial> {
    match by {
        By::Count => Some(Partial::Int(1)),
        _ => value.int().map(Partial::Int).or_else(|| value.float().map(Partial::Float)),
    }
}

/// Any values: bytes as the end of the stage has them, see [`crate::program`].
impl Fold for Bytes {
    const COMBINES: bool = false;

    fn combine(_: End, _: Vec<u8>, _: Vec<u8>) -> Vec<u8> {
        unreachable!("bytes do not combine")
    }

    fn pair<'b>(
        end: End,
        tag: u32,
        output: &impl Output,
        buffers: &'b mut Buffers,
    ) -> Result<(&'b [u8], &'b [u8]), Stop> {
        output.with_pair(|of, value| {
            buffers.value.clear();
            if let End::Join(_) = end {
                buffers.value.push(tag as u8);
            }
            key_and_header(of, buffers)?;
            Ok(value.encode(&mut buffers.value)?)
        })?;
        Ok((&buffers.key, &buffers.value))
    }

    fn emit(
        end: End,
        origin: Origin,
        outputs: &Bound<'_, PyAny>,
        out: &mut impl Emit<Bytes, Bytes>,
    ) -> Result<(), Stop> {
        let mut buffers = Buffers::default();
        match end {
            // One pair for the whole chunk, whose key puts it into the order of the input.
            End::Gather {} => {
                let key = [origin.source as u64, origin.offset].map(u64::to_be_bytes).concat();
                for output in outputs.try_iter()? {
                    let output = output?;
                    match output.cast_exact::<Batch>() {
                        Ok(batch) => {
                            let (rows, part) = batch.get().records(batch.py())?;
                            let mut rows = (0..rows).map(|number| BatchRow { part: &part, number });
                            rows.try_for_each(|row| row.encode(&mut buffers.value))?;
                        }
                        Err(_) => values::encode(&output, &mut buffers.value)?,
                    }
                }
                out.emit(&key, &buffers.value);
            }
            End::Sort { descending } => {
                for output in outputs.try_iter()? {
                    let (key, value) = sorted(&output?, descending, false, &mut buffers)?;
                    out.emit(key, value);
                }
            }
            End::Columns { partitions, .. } => {
                let mut place = groups::BlockPlace { source: origin.source, offset: origin.offset, batch: 0 };
                for output in outputs.try_iter()? {
                    let output = output?;
                    let Ok(batch) = output.cast_exact::<Batch>() else { return Err(Stop::Unfit(Code::Unfit)) };
                    let (rows, records) = batch.get().records(batch.py())?;
                    if rows == 0 {
                        continue;
                    }
                    let (key, value) = BatchRow { part: &records, number: 0 }.pair()?;
                    let (Some((Kind::Ints, keys)), Some((kind, numbers))) =
                        (values::numbers(key.part), values::numbers(value.part))
                    else {
                        return Err(Stop::Unfit(Code::Unfit));
                    };
                    groups::deal(partitions, place, kind, (keys, numbers), |key, block| out.emit(key, block));
                    place.batch += 1;
                }
            }
            // No more than can be in the result.
            End::Top { count } => {
                let mut least = BinaryHeap::new();
                for output in outputs.try_iter()? {
                    let (key, value) = sorted(&output?, true, true, &mut buffers)?;
                    if least.len() < count
                        || least.peek().is_some_and(|(greatest, _): &(Vec<u8>, _)| key < &greatest[..])
                    {
                        least.push((key.to_vec(), value.to_vec()));
                    }
                    if least.len() > count {
                        least.pop();
                    }
                }
                least.iter().for_each(|(key, value)| out.emit(key, value));
            }
            _ => emit_pairs::<Bytes>(end, origin.tag, outputs, out)?,
        }
        Ok(())
    }

    /// Emits the rows of a batch; of groups, the values of a key together.
    fn emit_batch(
        end: End,
        tag: u32,
        batch: &Bound<'_, Batch>,
        buffers: &mut Buffers,
        out: &mut impl Emit<Bytes, Bytes>,
    ) -> Result<(), Stop> {
        let (rows, records) = batch.get().records(batch.py())?;
        if rows == 0 || !matches!(end, End::Groups { .. }) {
            for number in 0..rows {
                let (key, value) = Bytes::pair(end, tag, &BatchRow { part: &records, number }, buffers)?;
                out.emit(key, value);
            }
            return Ok(());
        }
        let (key, values) = BatchRow { part: &records, number: 0 }.pair()?;
        for (key, types, rows) in Grouped::new(rows, key.part).iter() {
            for rows in rows.chunks(GROUP_PART) {
                buffers.value.clear();
                buffers.value.extend_from_slice(&types.0.to_le_bytes());
                values::encode_rows(values.part, rows, &mut buffers.value)?;
                out.emit(key, &buffers.value);
            }
        }
        Ok(())
    }

    fn emit_bytes(key: &[u8], value: &[u8], out: &mut impl Emit<Bytes, Bytes>) {
        out.emit(key, value);
    }

    fn append(_: End, _: &[u8], records: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(records);
    }
}

/// Writes a pair of what a record is sorted by and the record. Ties are ordered by the record, if asked for.
fn sorted<'b>(
    output: &Bound<'_, PyAny>,
    descending: bool,
    with_ties: bool,
    buffers: &'b mut Buffers,
) -> Result<(&'b [u8], &'b [u8]), Stop> {
    output.with_pair(|by, record| {
        buffers.key.clear();
        buffers.value.clear();
        keys::encode_sorted(by, descending, &mut buffers.key)?;
        if with_ties {
            append_tie(record, &mut buffers.key)?;
        }
        Ok(values::encode(record, &mut buffers.value)?)
    })?;
    Ok((&buffers.key, &buffers.value))
}

/// The values of a key in a batch are emitted in parts of at most so many.
const GROUP_PART: usize = 4096;

/// Appends the record by which records with equal keys are ordered, if it has an order.
fn append_tie(record: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> PyResult<()> {
    let start = to.len();
    match keys::encode_sorted(record, false, to) {
        Err(error) if error.is_instance_of::<NoOrder>(record.py()) => to.truncate(start),
        result => return result,
    }
    Ok(())
}
