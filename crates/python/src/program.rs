//! The program of a stage: what the engine's workers do with a chunk, and with the values of a key.

use std::marker::PhantomData;
use std::sync::Arc;

use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError, Values};
use gristmill_apps::UnicodeWords;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::arrays::{Output, with_views};
use crate::exceptions::Code;
use crate::folds::{End, Fold, How, Origin, unfit};
use crate::groups::{self, PartGroups};
use crate::keys::{self, Types};
use crate::outputs::Stop;
use crate::stream::Stream;
use crate::values::{self, Numbers, Shown};

/// The records that become of a key are emitted in parts of about this size.
const PART_BYTES: usize = 1 << 20;

/// The records of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Records {
    /// Lines of text; if not strict, the Python functions decode them.
    Text,
    /// Lines as bytes.
    Lines,
    /// Whole rows of CSV, which Python takes apart: the path of a file, an offset in its content, and bytes.
    Rows,
    /// As many records as bytes; the byte at an offset stands for so many objects of the Python side.
    Places { each: u64, count: u64 },
    /// The result of an earlier stage, with its end and form.
    Made(End, Form),
}

/// The form of the values of a stage.
#[pyclass(frozen, eq, hash, from_py_object, rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Form {
    Count,
    Int,
    Float,
    /// The same of keys that have a header.
    CountShown,
    IntShown,
    FloatShown,
    Several,
    Any,
}

/// The program of a stage.
pub struct StageProgram {
    pub end: End,
    /// The records of each input, by tag.
    pub inputs: Vec<Records>,
    /// The Python functions, as the class `Functions` of `python/gristmill/engines/machine/workers.py` has them.
    pub functions: Py<PyAny>,
    /// The shared arrays that the functions may write.
    pub arrays: Vec<Arc<Output>>,
    /// Where the records go, if the end is [`End::Stream`].
    pub stream: Option<Arc<Stream>>,
    /// Whether a group on which a function fails is set aside.
    pub skip: bool,
}

/// The program with values of the form `V`.
pub struct Typed<'p, V> {
    pub program: &'p StageProgram,
    pub form: PhantomData<fn() -> V>,
}

impl<V: Fold> MapReduce for Typed<'_, V> {
    type Key = Bytes;
    type Value = V;

    #[inline(always)]
    fn combiner(&self) -> Option<impl Fn(V::Owned, V::Owned) -> V::Owned> {
        let end = self.program.end;
        V::COMBINES.then_some(move |a, b| V::combine(end, a, b))
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, V>) -> Result<(), ProgramError> {
        let program = self.program;
        Python::attach(|py| match program.arrays.is_empty() {
            true => program.map::<V>(py, chunk, out),
            false => program.map_to_arrays::<V>(py, chunk, out),
        })
    }

    fn end_task(&self, task: usize) {
        if let Some(stream) = &self.program.stream {
            stream.end_task(task);
        }
    }
}

/// Counts the words of text as `str.split` finds them, or its lines.
pub struct Text {
    pub lines: bool,
}

impl MapReduce for Text {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        if !self.lines {
            return UnicodeWords.map(chunk, out).map_err(|error| error.code(Code::NotUtf8 as i32));
        }
        let text = text_of(chunk)?;
        let mut places = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            places.push([start, start + without_end(line).len()].map(|place| place as u32));
            start += line.len();
        }
        out.emit_each(text.as_bytes(), &places, 1);
        Ok(())
    }
}

/// Returns the text of a chunk.
fn text_of<'c>(chunk: &'c Chunk<'_>) -> Result<&'c str, ProgramError> {
    str::from_utf8(chunk.bytes())
        .map_err(|error| chunk.reject(error.valid_up_to(), "this is not UTF-8").code(Code::NotUtf8 as i32))
}

impl StageProgram {
    /// Maps while Python may write the shared arrays.
    fn map_to_arrays<V: Fold>(
        &self,
        py: Python<'_>,
        chunk: &Chunk<'_>,
        out: &mut impl Emit<Bytes, V>,
    ) -> Result<(), ProgramError> {
        with_views(&self.arrays, &mut Vec::new(), |addresses| {
            let arrays_failed = |error: PyErr| ProgramError::new(format!("the shared arrays: {error}"));
            let functions = self.functions.bind(py);
            functions.call_method1(intern!(py, "lend"), (addresses.to_vec(),)).map_err(arrays_failed)?;
            let mapped = self.map(py, chunk, out);
            functions.call_method0(intern!(py, "take_back")).map_err(arrays_failed)?;
            mapped
        })
    }

    fn map<V: Fold>(
        &self,
        py: Python<'_>,
        chunk: &Chunk<'_>,
        out: &mut impl Emit<Bytes, V>,
    ) -> Result<(), ProgramError> {
        let (records, keys) = self.given(py, chunk)?;
        let place = (chunk.tag(), &records, chunk.source_number(), chunk.offset());
        let mapped = match keys {
            Some(keys) => self.map_made(py, place, keys, out),
            None => {
                let outputs = self.functions.bind(py).call_method1(intern!(py, "map"), place);
                let origin = Origin { tag: chunk.tag(), source: chunk.source_number(), offset: chunk.offset() };
                outputs.map_err(Stop::from).and_then(|outputs| match &self.stream {
                    Some(stream) => Ok(stream.add(chunk.task(), &outputs)?),
                    None => V::emit(self.end, origin, &outputs, out),
                })
            }
        };
        mapped.map_err(|stop| match stop {
            Stop::Unfit(code) => chunk.too_large(0, "the values need another form").code(code as i32),
            Stop::Raised(error) => {
                let count = match self.inputs[chunk.tag() as usize] {
                    Records::Places { .. } => chunk.bytes().len(),
                    Records::Rows => 1,
                    _ => records.len().unwrap_or(0),
                };
                self.failed(py, &error, (chunk.tag(), &records, count), chunk)
            }
        })
    }

    /// Returns the error for an exception of a Python function. The engine maps the records of a chunk one by one to
    /// find the one that fails, unless the pipeline is at fault, and not a record.
    fn failed(
        &self,
        py: Python<'_>,
        error: &PyErr,
        (tag, records, count): (u32, &Bound<'_, PyAny>, usize),
        chunk: &Chunk<'_>,
    ) -> ProgramError {
        let told = self
            .functions
            .bind(py)
            .call_method1(intern!(py, "failed"), (error.clone_ref(py).into_value(py), tag, records, count));
        match told.and_then(|told| told.extract::<(String, bool)>()) {
            Ok((why, true)) => ProgramError::new(why).code(Code::Failed as i32),
            Ok((why, false)) => chunk.too_large(0, why).code(Code::Failed as i32),
            Err(other) => ProgramError::new(format!("{error}; and telling of it failed: {other}")),
        }
    }

    /// Maps what another stage made, without a shuffle: one pair for each of its pairs, so that they keep its order.
    fn map_made<V: Fold>(
        &self,
        py: Python<'_>,
        place: (u32, &Bound<'_, PyAny>, usize, u64),
        keys: Vec<Vec<u8>>,
        out: &mut impl Emit<Bytes, V>,
    ) -> Result<(), Stop> {
        let outputs = self.functions.bind(py).call_method1(intern!(py, "map_each"), place)?;
        let mut made = Vec::new();
        for (key, of_pair) in keys.iter().zip(outputs.try_iter()?) {
            made.clear();
            for output in of_pair?.try_iter()? {
                values::encode(&output?, &mut made)?;
            }
            V::emit_bytes(key, &made, out);
        }
        Ok(())
    }

    /// Returns the records of a chunk as Python sees them.
    fn given<'py>(&self, py: Python<'py>, chunk: &Chunk<'_>) -> Result<Given<'py>, ProgramError> {
        let kind = self.inputs[chunk.tag() as usize];
        let decoding_failed = |error: PyErr| ProgramError::new(format!("records for Python: {error}"));
        match kind {
            Records::Text => {
                let lines = text_of(chunk)?.split_inclusive('\n').map(|line| PyString::new(py, without_end(line)));
                PyList::new(py, lines.collect::<Vec<_>>()).map(without_keys).map_err(decoding_failed)
            }
            Records::Lines => {
                let lines = chunk.bytes().split_inclusive(|byte| *byte == b'\n');
                let line = |line: &[u8]| {
                    let whole = line.strip_suffix(b"\r\n").or_else(|| line.strip_suffix(b"\n")).unwrap_or(line);
                    PyBytes::new(py, whole)
                };
                let lines = lines.map(line).collect::<Vec<_>>();
                PyList::new(py, lines).map(without_keys).map_err(decoding_failed)
            }
            Records::Rows => {
                let piece = (chunk.source().path.as_os_str(), chunk.offset(), PyBytes::new(py, chunk.bytes()));
                piece.into_pyobject(py).map(without_keys).map_err(decoding_failed)
            }
            Records::Places { each, count } => {
                let start = chunk.offset() * each;
                let end = count.min(start + chunk.bytes().len() as u64 * each);
                let range = py
                    .import(intern!(py, "builtins"))
                    .and_then(|builtins| builtins.call_method1(intern!(py, "range"), (start, end)));
                range.map(without_keys).map_err(decoding_failed)
            }
            Records::Made(end, form) => {
                let apart = matches!(self.end, End::Gather {});
                match form {
                    Form::Count => made_records::<u64>(py, chunk, end, apart),
                    Form::Int => made_records::<(i64, u64)>(py, chunk, end, apart),
                    Form::Float => made_records::<(f64, u64)>(py, chunk, end, apart),
                    Form::CountShown => made_records::<(u64, Bytes)>(py, chunk, end, apart),
                    Form::IntShown => made_records::<((i64, u64), Bytes)>(py, chunk, end, apart),
                    Form::FloatShown => made_records::<((f64, u64), Bytes)>(py, chunk, end, apart),
                    Form::Several => made_records::<(Bytes, Bytes)>(py, chunk, end, apart),
                    Form::Any => made_records::<Bytes>(py, chunk, end, apart),
                }
            }
        }
    }

    /// Makes the records of a key and its values: the reduce function of stages whose values are [`Bytes`].
    pub fn reduce(
        &self,
        key: &[u8],
        found: &mut Values<'_, Bytes, Bytes>,
        emit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), ProgramError> {
        match self.end {
            End::Join(how) => join(how, key, found, emit),
            End::Columns { arrays, .. } => self.reduce_columns(arrays, found, emit),
            _ => Python::attach(|py| {
                let given = self.group_of(py, found);
                self.apply(py, key, given, emit)
            }),
        }
    }

    /// Reduces the groups of a partition.
    fn reduce_columns(
        &self,
        arrays: bool,
        blocks: &mut Values<'_, Bytes, Bytes>,
        emit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), ProgramError> {
        let (mut kind_of_all, mut rows) = (None, Vec::new());
        while let Some(block) = blocks.next() {
            let (kind, more) = groups::read_block(block);
            if *kind_of_all.get_or_insert(kind) != kind {
                return Err(unfit());
            }
            rows.extend_from_slice(more);
        }
        let (kind, groups) = (kind_of_all.expect("a key has a value"), PartGroups::new(&rows));
        drop(rows);
        let (mut types, mut of) = (Types::default(), Vec::new());
        Python::attach(|py| {
            groups.try_for_each(|key, numbers| {
                of.clear();
                keys::encode_i64(key, &mut types, &mut of);
                let given = if arrays { values::array(py, kind, numbers) } else { values::list(py, kind, numbers) };
                self.apply(py, &of, given.map(|given| (Shown::plain(types), given)), emit)
            })
        })
    }

    /// Returns the values of a group as its function wants them, and what its key is shown as.
    fn group_of<'py>(
        &self,
        py: Python<'py>,
        found: &mut Values<'_, Bytes, Bytes>,
    ) -> PyResult<(Shown, Bound<'py, PyAny>)> {
        let mut shown = Shown::default();
        let values = PyList::empty(py);
        let mut numbers = matches!(self.end, End::Groups { arrays: true }).then(Numbers::default);
        while let Some(mut value) = found.next() {
            shown.see(&mut value);
            if let Some(all) = &mut numbers {
                let before = all.len();
                if all.take(value)? {
                    continue;
                }
                // A value that is no number, or one of another type: all become objects.
                all.append(before, &values)?;
                numbers = None;
            }
            values::decode_values(py, value, &values)?;
        }
        let given = match numbers {
            Some(numbers) => numbers.array(py)?,
            None => values.into_any(),
        };
        Ok((shown, given))
    }

    /// Emits the records that become of a key and its values.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        given: PyResult<(Shown, Bound<'py, PyAny>)>,
        emit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), ProgramError> {
        let (mut of, mut values) = (None, None);
        let made = given.and_then(|(shown, given)| {
            let values = values.insert(given);
            let of = of.insert(shown.decode(py, key)?);
            let records = self.functions.bind(py).call_method1(intern!(py, "reduce"), (&*of, &*values))?;
            let mut to = Vec::new();
            for record in records.try_iter()? {
                values::encode(&record?, &mut to)?;
                // Records of a group that is set aside must not have been emitted.
                if to.len() > PART_BYTES && !self.skip {
                    emit(key, &to);
                    to.clear();
                }
            }
            Ok(to)
        });
        match made {
            Ok(records) => {
                emit(key, &records);
                Ok(())
            }
            Err(error) => {
                let told = self
                    .functions
                    .bind(py)
                    .call_method1(intern!(py, "failed_group"), (error.clone_ref(py).into_value(py), of, values));
                match told.and_then(|told| told.extract::<Option<String>>()) {
                    Ok(None) => Ok(()),
                    Ok(Some(why)) => Err(ProgramError::new(why).code(Code::Failed as i32)),
                    Err(other) => Err(ProgramError::new(format!("{error}; and telling of it failed: {other}"))),
                }
            }
        }
    }
}

/// Returns a line without LF or CR LF at its end. A last line that ends with CR alone keeps it, as in Python.
fn without_end(line: &str) -> &str {
    line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line)
}

/// The records of a chunk; and if each pair of another stage has a list of records, the keys of the pairs.
type Given<'py> = (Bound<'py, PyAny>, Option<Vec<Vec<u8>>>);

fn without_keys<T>(records: Bound<'_, T>) -> Given<'_> {
    (records.into_any(), None)
}

/// Returns the records of a chunk of pairs; `apart`, a list of them for each pair.
fn made_records<'py, V: Fold>(
    py: Python<'py>,
    chunk: &Chunk<'_>,
    end: End,
    apart: bool,
) -> Result<Given<'py>, ProgramError> {
    let decoding_failed = |error: PyErr| ProgramError::new(format!("records for Python: {error}"));
    let (all, mut keys, mut bytes) = (PyList::empty(py), Vec::new(), Vec::new());
    for (key, value) in chunk.pairs::<Bytes, V>()? {
        V::append(end, key, value, &mut bytes);
        if apart {
            all.append(values::decode_all(py, &bytes).map_err(decoding_failed)?).map_err(decoding_failed)?;
            keys.push(key.to_vec());
            bytes.clear();
        }
    }
    if apart {
        return Ok((all.into_any(), Some(keys)));
    }
    values::decode_all(py, &bytes).map(without_keys).map_err(decoding_failed)
}

/// Joins: values begin with their side and the headers of their keys, and the left ones come first.
fn join(
    how: How,
    key: &[u8],
    found: &mut Values<'_, Bytes, Bytes>,
    emit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), ProgramError> {
    let (mut lefts, mut rights, mut shown): (Vec<Vec<u8>>, Vec<Vec<u8>>, Shown) = Default::default();
    while let Some(value) = found.next() {
        let (side, mut value) = value.split_first().expect("the side comes first");
        shown.see(&mut value);
        if *side == 0 { &mut lefts } else { &mut rights }.push(value.to_vec());
    }
    let mut records = Vec::new();
    if how == How::Anti {
        if rights.is_empty() {
            for left in &lefts {
                values::begin_tuple(2, &mut records);
                shown.append(key, &mut records);
                records.extend_from_slice(left);
            }
        }
    } else {
        let mut none = Vec::new();
        values::encode_none(&mut none);
        if lefts.is_empty() && matches!(how, How::Right | How::Full) {
            lefts.push(none.clone());
        }
        if rights.is_empty() && matches!(how, How::Left | How::Full) {
            rights.push(none);
        }
        for (left, right) in lefts.iter().flat_map(|left| rights.iter().map(move |right| (left, right))) {
            values::begin_tuple(2, &mut records);
            shown.append(key, &mut records);
            values::begin_tuple(2, &mut records);
            records.extend_from_slice(left);
            records.extend_from_slice(right);
            // A frequent key has very many records: its values, multiplied.
            if records.len() > PART_BYTES {
                emit(key, &records);
                records.clear();
            }
        }
    }
    if !records.is_empty() {
        emit(key, &records);
    }
    Ok(())
}
