//! Values as bytes. They need no order, so they are written as is cheapest to read.
//!
//! ```text
//!  00 None | 01 False | 02 True | 03 int, 8 | 04 float, 8 | 05 str | 06 bytes | 07 tuple | 08 list | 09 pickle
//!  0a dict | 0b key: its types, 4, and its bytes as in `keys` | 0c mean: sum, 8, and number, 8
//!  0d many ints, 8 each | 0e many floats, 8 each
//! ```
//!
//! Text, bytes, pickles and keys have their length in front (4 bytes), tuples, lists and dicts the number of their
//! items. Many ints or floats are as many values, with their number in front; only values of a group are written
//! so.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::batches::{BatchPart, BatchRow, Item, Values};
use crate::keys::{self, Types};
use crate::pickles::{pickle, unpickle};

const NONE: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;
const BYTES: u8 = 6;
const TUPLE: u8 = 7;
const LIST: u8 = 8;
const PICKLE: u8 = 9;
const DICT: u8 = 10;
const KEY: u8 = 11;
const MEAN: u8 = 12;
const INTS: u8 = 13;
const FLOATS: u8 = 14;

/// Containers in containers that lie deeper are pickled: one may contain itself.
const DEPTH: usize = 32;

/// Appends the bytes of `value`.
pub fn encode(value: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> PyResult<()> {
    encode_at(value, 0, to)
}

fn encode_at(value: &Bound<'_, PyAny>, depth: usize, to: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<i64>()
    {
        encode_i64(number, to);
    } else if let Ok(text) = value.cast_exact::<PyString>()
        && let Ok(text) = text.to_str()
    {
        put(TEXT, text.as_bytes(), to)?;
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        encode_f64(number.value(), to);
    } else if value.is_none() {
        to.push(NONE);
    } else if let Ok(is_true) = value.cast_exact::<PyBool>() {
        to.push(if is_true.is_true() { TRUE } else { FALSE });
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        put(BYTES, bytes.as_bytes(), to)?;
    } else if depth == DEPTH {
        put(PICKLE, pickle(value)?.as_bytes(), to)?;
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        begin(TUPLE, tuple.len(), to)?;
        tuple.iter().try_for_each(|item| encode_at(&item, depth + 1, to))?;
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        begin(LIST, list.len(), to)?;
        list.iter().try_for_each(|item| encode_at(&item, depth + 1, to))?;
    } else if let Ok(dict) = value.cast_exact::<PyDict>() {
        begin(DICT, dict.len(), to)?;
        for (key, item) in dict.iter() {
            encode_at(&key, depth + 1, to)?;
            encode_at(&item, depth + 1, to)?;
        }
    } else {
        put(PICKLE, pickle(value)?.as_bytes(), to)?;
    }
    Ok(())
}

/// Appends the bytes of a value that is in columns.
pub fn encode_row(value: BatchRow<'_, '_>, to: &mut Vec<u8>) -> PyResult<()> {
    match value.item() {
        Item::None => to.push(NONE),
        Item::Bool(is_true) => to.push(if is_true { TRUE } else { FALSE }),
        Item::Int(number) => encode_i64(number, to),
        Item::Float(number) => encode_f64(number, to),
        Item::Text(text) => put(TEXT, text, to)?,
        Item::Bytes(bytes) => put(BYTES, bytes, to)?,
        Item::Tuple(parts) => {
            begin(TUPLE, parts.len(), to)?;
            value.of(parts).try_for_each(|part| encode_row(part, to))?;
        }
    }
    Ok(())
}

/// Appends values that are in columns: numbers without a tag for each.
pub fn encode_rows<'p, 'b: 'p>(part: &'p BatchPart<'b>, rows: &[u32], to: &mut Vec<u8>) -> PyResult<()> {
    let Some((kind, numbers)) = numbers(part) else {
        return rows.iter().try_for_each(|row| encode_row(BatchRow { part, number: *row as usize }, to));
    };
    begin(if kind == Kind::Ints { INTS } else { FLOATS }, rows.len(), to)?;
    rows.iter().for_each(|row| to.extend_from_slice(&numbers[*row as usize]));
    Ok(())
}

/// Whether numbers are ints or floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Ints,
    Floats,
}

/// Returns the numbers of a column that has nothing else.
pub fn numbers<'b>(part: &BatchPart<'b>) -> Option<(Kind, &'b [[u8; 8]])> {
    match part {
        BatchPart::Column { values: Values::Int(numbers), valid: None } => Some((Kind::Ints, numbers)),
        BatchPart::Column { values: Values::Float(numbers), valid: None } => Some((Kind::Floats, numbers)),
        _ => None,
    }
}

/// Begins a tuple, whose items must follow: a pair has a key and a value.
pub fn begin_tuple(items: usize, to: &mut Vec<u8>) {
    to.push(TUPLE);
    to.extend_from_slice(&(items as u32).to_le_bytes());
}

/// Appends a whole number.
pub fn encode_i64(number: i64, to: &mut Vec<u8>) {
    to.push(INT);
    to.extend_from_slice(&number.to_le_bytes());
}

/// Appends a float.
pub fn encode_f64(number: f64, to: &mut Vec<u8>) {
    to.push(FLOAT);
    to.extend_from_slice(&number.to_le_bytes());
}

/// Appends the mean of ints, rounded once.
pub fn encode_mean(sum: i64, count: u64, to: &mut Vec<u8>) {
    to.push(MEAN);
    to.extend_from_slice(&sum.to_le_bytes());
    to.extend_from_slice(&count.to_le_bytes());
}

/// Appends `None`.
pub fn encode_none(to: &mut Vec<u8>) {
    to.push(NONE);
}

/// Appends text.
pub fn encode_text(text: &[u8], to: &mut Vec<u8>) {
    to.push(TEXT);
    to.extend_from_slice(&(text.len() as u32).to_le_bytes());
    to.extend_from_slice(text);
}

/// Appends what travels beside the bytes of a key, so that it can be shown: the types of its numbers, and if it is odd,
/// the length and the bytes of the key as a value, which `encode` appends.
pub fn encode_header(
    types: Types,
    encode: impl FnOnce(&mut Vec<u8>) -> PyResult<()>,
    to: &mut Vec<u8>,
) -> PyResult<()> {
    to.extend_from_slice(&types.0.to_le_bytes());
    if types.is_odd() {
        let start = to.len();
        to.extend_from_slice(&[0; 4]);
        encode(to)?;
        let length = length(to.len() - start - 4)?;
        to[start..start + 4].copy_from_slice(&length);
    }
    Ok(())
}

/// Returns the header that two equal keys have together, as [`Shown`] does.
pub fn merged(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    if a == b {
        return a;
    }
    let mut shown = Shown::default();
    shown.see(&mut &a[..]);
    shown.see(&mut &b[..]);
    match shown.is_plain {
        true => shown.types.0.to_le_bytes().to_vec(),
        false if a.ends_with(&shown.odd) && a.len() == shown.odd.len() + 8 => a,
        false => b,
    }
}

/// The key that stands for equal ones: the plain ones, if there are any, by the types of their numbers; else the
/// least of the odd ones as bytes, so that it does not depend on the order in which they come.
#[derive(Default)]
pub struct Shown {
    types: Types,
    is_plain: bool,
    odd: Vec<u8>,
}

impl Shown {
    /// Makes what a plain key is shown as.
    pub fn plain(types: Types) -> Shown {
        Shown { types, is_plain: true, odd: Vec::new() }
    }

    /// Takes the header of a key.
    pub fn see(&mut self, bytes: &mut &[u8]) {
        let (types, rest) = bytes.split_first_chunk().expect("types come first");
        let types = Types(u32::from_le_bytes(*types));
        *bytes = rest;
        if !types.is_odd() {
            self.types.0 |= types.0;
            self.is_plain = true;
            return;
        }
        let odd = counted(bytes).expect("an odd key comes after its types");
        if !self.is_plain && (self.odd.is_empty() || *odd < self.odd[..]) {
            self.odd = odd.to_vec();
        }
    }

    /// Appends the key as a value, given its bytes.
    pub fn append(&self, key: &[u8], to: &mut Vec<u8>) {
        match self.is_plain {
            true => encode_key(key, self.types, to),
            false => to.extend_from_slice(&self.odd),
        }
    }

    /// Returns the key, given its bytes.
    pub fn decode<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self.is_plain {
            true => keys::decode(py, key, self.types),
            false => decode(py, &mut &self.odd[..]),
        }
    }
}

/// Appends a plain key that was encoded before.
pub fn encode_key(key: &[u8], types: Types, to: &mut Vec<u8>) {
    to.push(KEY);
    to.extend_from_slice(&(key.len() as u32).to_le_bytes());
    to.extend_from_slice(&types.0.to_le_bytes());
    to.extend_from_slice(key);
}

fn length(length: usize) -> PyResult<[u8; 4]> {
    let length = u32::try_from(length);
    length.map(u32::to_le_bytes).map_err(|_| PyValueError::new_err("a value is shorter than 4 GiB"))
}

/// Appends a tag, and how many items or bytes follow.
fn begin(tag: u8, count: usize, to: &mut Vec<u8>) -> PyResult<()> {
    to.push(tag);
    to.extend_from_slice(&length(count)?);
    Ok(())
}

fn put(tag: u8, bytes: &[u8], to: &mut Vec<u8>) -> PyResult<()> {
    begin(tag, bytes.len(), to)?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// A value that can stand in a column.
#[derive(Clone, Copy)]
pub enum Cell<'b> {
    Text(&'b [u8]),
    Int(i64),
    Float(f64),
}

/// The greatest number that every float below it can count.
const EXACT_MAX: u64 = 1 << 53;

/// Takes the beginning of a pair, if that comes next.
pub fn take_pair(bytes: &mut &[u8]) -> bool {
    match bytes.strip_prefix(&[TUPLE, 2, 0, 0, 0]) {
        Some(rest) => {
            *bytes = rest;
            true
        }
        None => false,
    }
}

/// Takes the next value, if it can stand in a column.
pub fn cell<'b>(bytes: &mut &'b [u8]) -> PyResult<Option<Cell<'b>>> {
    Ok(match take(bytes, 1)?[0] {
        TEXT => Some(Cell::Text(counted(bytes)?)),
        INT => Some(Cell::Int(i64::from_le_bytes(*eight(bytes)?))),
        FLOAT => Some(Cell::Float(f64::from_le_bytes(*eight(bytes)?))),
        MEAN => {
            let (sum, count) = (i64::from_le_bytes(*eight(bytes)?), u64::from_le_bytes(*eight(bytes)?));
            // Beyond, the division would round twice.
            (sum.unsigned_abs() <= EXACT_MAX && count <= EXACT_MAX).then(|| Cell::Float(sum as f64 / count as f64))
        }
        KEY => {
            let count = number(bytes)?;
            let types = Types(number(bytes)?);
            let key = take(bytes, count as usize)?;
            keys::as_text(key).map(Cell::Text).or_else(|| keys::as_int(key, types).map(Cell::Int))
        }
        _ => None,
    })
}

/// Returns the records of a block, as a list.
#[pyfunction]
#[pyo3(name = "decode")]
pub fn decode_all<'py>(py: Python<'py>, mut bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let records = PyList::empty(py);
    while !bytes.is_empty() {
        records.append(decode(py, &mut bytes)?)?;
    }
    Ok(records)
}

/// Returns the number of records of a block.
#[pyfunction]
pub fn count(mut bytes: &[u8]) -> PyResult<u64> {
    let mut count = 0;
    while !bytes.is_empty() {
        skip(&mut bytes)?;
        count += 1;
    }
    Ok(count)
}

/// Passes over the first value of `bytes`.
fn skip(bytes: &mut &[u8]) -> PyResult<()> {
    match take(bytes, 1)?[0] {
        NONE | FALSE | TRUE => {}
        INT | FLOAT => drop(eight(bytes)?),
        MEAN => drop(take(bytes, 16)?),
        TEXT | BYTES | PICKLE => drop(counted(bytes)?),
        TUPLE | LIST => (0..number(bytes)?).try_for_each(|_| skip(bytes))?,
        DICT => (0..number(bytes)?).try_for_each(|_| skip(bytes).and_then(|()| skip(bytes)))?,
        KEY => {
            let count = number(bytes)?;
            number(bytes)?;
            take(bytes, count as usize)?;
        }
        _ => return Err(damaged()),
    }
    Ok(())
}

/// Puts the records of a block into a dict: pairs without a tuple for each. Raises what `dict.update` does if one is
/// no pair.
#[pyfunction]
pub fn decode_into(dict: &Bound<'_, PyDict>, mut bytes: &[u8]) -> PyResult<()> {
    let py = dict.py();
    while !bytes.is_empty() {
        if take_pair(&mut bytes) {
            let key = decode(py, &mut bytes)?;
            dict.set_item(key, decode(py, &mut bytes)?)?;
        } else {
            // Anything of two items will do, such as a list.
            dict.call_method1(intern!(py, "update"), ([decode(py, &mut bytes)?],))?;
        }
    }
    Ok(())
}

/// The values of a group: numbers of one type without objects, as long as no other value comes.
#[derive(Default)]
pub struct Numbers {
    kind: Option<Kind>,
    bytes: Vec<u8>,
}

impl Numbers {
    /// Takes all values of `bytes`, if they are numbers of the same type as those before.
    pub fn take(&mut self, mut bytes: &[u8]) -> PyResult<bool> {
        while !bytes.is_empty() {
            let (kind, count) = match take(&mut bytes, 1)?[0] {
                INT => (Kind::Ints, 1),
                FLOAT => (Kind::Floats, 1),
                INTS => (Kind::Ints, number(&mut bytes)?),
                FLOATS => (Kind::Floats, number(&mut bytes)?),
                _ => return Ok(false),
            };
            if *self.kind.get_or_insert(kind) != kind {
                return Ok(false);
            }
            self.bytes.extend_from_slice(take(&mut bytes, count as usize * 8)?);
        }
        Ok(true)
    }

    /// Returns how many bytes the numbers are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the numbers of the first `len` bytes to a list.
    pub fn append(&self, len: usize, to: &Bound<'_, PyList>) -> PyResult<()> {
        append(self.kind(), self.bytes[..len].as_chunks().0, to)
    }

    /// As [`array()`].
    pub fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array(py, self.kind(), self.bytes.as_chunks().0)
    }

    fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::Ints)
    }
}

/// Appends numbers to a list.
fn append(kind: Kind, numbers: &[[u8; 8]], to: &Bound<'_, PyList>) -> PyResult<()> {
    numbers.iter().try_for_each(|number| match kind {
        Kind::Ints => to.append(i64::from_le_bytes(*number)),
        Kind::Floats => to.append(f64::from_le_bytes(*number)),
    })
}

/// Returns numbers as Python makes an array of NumPy of them: the name of its type, and the bytes.
pub fn array<'py>(py: Python<'py>, kind: Kind, numbers: &[[u8; 8]]) -> PyResult<Bound<'py, PyAny>> {
    let name = if kind == Kind::Floats { "float64" } else { "int64" };
    Ok((name, PyByteArray::new(py, numbers.as_flattened())).into_pyobject(py)?.into_any())
}

/// Returns a list of numbers, whose room is known from the beginning.
pub fn list<'py>(py: Python<'py>, kind: Kind, numbers: &[[u8; 8]]) -> PyResult<Bound<'py, PyAny>> {
    let list = match kind {
        Kind::Floats => PyList::new(py, numbers.iter().map(|number| f64::from_le_bytes(*number))),
        Kind::Ints => PyList::new(py, numbers.iter().map(|number| i64::from_le_bytes(*number))),
    };
    list.map(Bound::into_any)
}

/// Appends all values of `bytes` to a list.
pub fn decode_values(py: Python<'_>, mut bytes: &[u8], to: &Bound<'_, PyList>) -> PyResult<()> {
    while let Some(tag) = bytes.first() {
        match *tag {
            tag @ (INTS | FLOATS) => {
                take(&mut bytes, 1)?;
                let count = number(&mut bytes)? as usize;
                let kind = if tag == INTS { Kind::Ints } else { Kind::Floats };
                append(kind, take(&mut bytes, count * 8)?.as_chunks().0, to)?;
            }
            _ => to.append(decode(py, &mut bytes)?)?,
        }
    }
    Ok(())
}

/// Reads the first value of `bytes`, which are then those after it.
pub fn decode<'py>(py: Python<'py>, bytes: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match take(bytes, 1)?[0] {
        NONE => py.None().into_bound(py),
        FALSE => PyBool::new(py, false).to_owned().into_any(),
        TRUE => PyBool::new(py, true).to_owned().into_any(),
        INT => i64::from_le_bytes(*eight(bytes)?).into_pyobject(py)?.into_any(),
        FLOAT => PyFloat::new(py, f64::from_le_bytes(*eight(bytes)?)).into_any(),
        TEXT => {
            let text = counted(bytes)?;
            PyString::new(py, std::str::from_utf8(text).map_err(|_| damaged())?).into_any()
        }
        BYTES => PyBytes::new(py, counted(bytes)?).into_any(),
        // Most tuples are pairs.
        TUPLE if bytes.starts_with(&[2, 0, 0, 0]) => {
            *bytes = &bytes[4..];
            let first = decode(py, bytes)?;
            PyTuple::new(py, [first, decode(py, bytes)?])?.into_any()
        }
        TUPLE => PyTuple::new(py, items(py, bytes)?)?.into_any(),
        LIST => PyList::new(py, items(py, bytes)?)?.into_any(),
        PICKLE => unpickle(py, counted(bytes)?)?,
        DICT => {
            let dict = PyDict::new(py);
            for _ in 0..number(bytes)? {
                let key = decode(py, bytes)?;
                dict.set_item(key, decode(py, bytes)?)?;
            }
            dict.into_any()
        }
        MEAN => {
            let sum = i64::from_le_bytes(*eight(bytes)?).into_pyobject(py)?;
            sum.div(u64::from_le_bytes(*eight(bytes)?))?
        }
        KEY => {
            let count = number(bytes)?;
            let types = Types(number(bytes)?);
            keys::decode(py, take(bytes, count as usize)?, types)?
        }
        _ => return Err(damaged()),
    })
}

fn items<'py>(py: Python<'py>, bytes: &mut &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    (0..number(bytes)?).map(|_| decode(py, bytes)).collect()
}

fn counted<'b>(bytes: &mut &'b [u8]) -> PyResult<&'b [u8]> {
    let count = number(bytes)?;
    take(bytes, count as usize)
}

fn number(bytes: &mut &[u8]) -> PyResult<u32> {
    Ok(u32::from_le_bytes(*take(bytes, 4)?.first_chunk().ok_or_else(damaged)?))
}

fn eight<'b>(bytes: &mut &'b [u8]) -> PyResult<&'b [u8; 8]> {
    take(bytes, 8)?.first_chunk().ok_or_else(damaged)
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> PyResult<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(taken)
}

fn damaged() -> PyErr {
    PyValueError::new_err("a value was damaged on its way from a worker")
}
