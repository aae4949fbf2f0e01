//! Keys as bytes whose order is that of Python, and which are the same bytes if Python says that the keys are equal.
//!
//! ```text
//!  None     10
//!  number   20, the float towards zero from it, 8, and what is left: 80 nothing, or 81 more, 7f less, and the distance
//!  distance a whole number (its length and its bytes), and 80, or 81 and 1 / the rest, as a distance whose bytes are inverted
//!  str      30, UTF-8 (lone surrogates are encoded like other characters)
//!  bytes    40, the bytes
//!  tuple    50, its items, 00
//!  other    60, the kind of its canonical form, the parts of the form, 00
//! ```
//!
//! Text and bytes in a tuple end with `00 00`, and a zero in them is written as `00 ff`; a key of its own needs
//! neither.
//!
//! As in a dict, `1`, `1.0` and `True` are one key. Which of them a result shows is known from [`Types`], which
//! travel with the values: `1` if there was an int among them. Unlike in a dict, NaN is equal to NaN. The canonical
//! form of a key of another type is made by `python/gristmill/base/keys`, which says what makes keys equal. Such a
//! key is *odd*: it cannot be read back from its bytes, so it travels beside them; see
//! [`crate::values::encode_header`].
//!
//! A distance needs no end: its terms are prefixes of no other terms, and for those inverted bytes turn the order
//! round, as 1 / x does. A negative number's distance is inverted as a whole. Only ints have distances without a
//! rest.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

use crate::batches::{BatchRow, Item};
use crate::exceptions::NoOrder;

const NONE: u8 = 0x10;
const NUMBER: u8 = 0x20;
const TEXT: u8 = 0x30;
const BYTES: u8 = 0x40;
const TUPLE: u8 = 0x50;
const OTHER: u8 = 0x60;
/// Ends a tuple; below every tag.
const END: u8 = 0x00;

/// Behind the float of a number: the number is that float, or an int that lies further from zero.
const NOTHING: u8 = 0x80;
const MORE: u8 = 0x81;
const LESS: u8 = 0x7f;
/// The distance up to which the length of a term is one byte; this byte stands for longer ones.
const LONG: u8 = 0xff;

/// Kinds of canonical forms, see `python/gristmill/base/keys`: a plain value that the key is shown as, or that it
/// equals; a number between two floats; and those whose parts have no order.
const PLAIN: u8 = 0;
const EQUAL: u8 = 1;
const BETWEEN: u8 = 2;
const SET: u8 = 3;
const DICT: u8 = 4;
/// The bits of a float's mantissa.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS;
/// Ints of more bits are beyond all floats.
const FLOAT_BITS_MAX: u32 = f64::MAX_EXP as u32;

/// The numbers in a key whose types are told apart, in the order in which they are written. Later ones share the last
/// place.
const PLACES: usize = 10;
/// The depth of tuples in tuples.
const DEPTH: usize = 100;

/// The types of the numbers in a key: three bits for each. Those of an odd key are [`Types::ODD`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(pub u32);

const INT: u8 = 1;
const FLOAT: u8 = 2;
const BOOL: u8 = 4;

impl Types {
    /// The key is not plain, so its bytes do not tell what to show.
    pub const ODD: Types = Types(1 << 30);

    /// Returns whether the key is odd.
    pub fn is_odd(self) -> bool {
        self.0 & Types::ODD.0 != 0
    }

    fn see(&mut self, number: usize, kind: u8) {
        self.0 |= u32::from(kind) << (3 * number.min(PLACES - 1));
    }

    fn at(self, number: usize) -> u8 {
        (self.0 >> (3 * number.min(PLACES - 1)) & 7) as u8
    }

    /// Returns whether all numbers are ints, which is what a key is read as without its types.
    pub fn are_ints(self) -> bool {
        const INTS: u32 = 0o11_1111_1111;
        self.0 & !INTS == 0
    }
}

/// Appends the bytes of `key`, and adds the types of its numbers to `types`.
pub fn encode(key: &Bound<'_, PyAny>, types: &mut Types, to: &mut Vec<u8>) -> PyResult<()> {
    let mut encoder = Encoder { types, to, only_ordered: false, numbers: 0, is_odd: false };
    encoder.item(key, Nesting::Whole, 0)?;
    if encoder.is_odd {
        *types = Types::ODD;
    }
    Ok(())
}

/// Appends the bytes of a key that is in columns, as [`encode`] does.
pub fn encode_row(key: BatchRow<'_, '_>, types: &mut Types, to: &mut Vec<u8>) {
    Encoder { types, to, only_ordered: false, numbers: 0, is_odd: false }.row(key, Nesting::Whole);
}

/// Appends the bytes of a key that is a whole number, as [`encode`] does.
pub fn encode_i64(key: i64, types: &mut Types, to: &mut Vec<u8>) {
    types.see(0, INT);
    encode_small(key, to);
}

/// Appends the bytes of a key by which records are sorted. They are no prefix of those of another key, so others may
/// follow; if the order is `descending`, they are inverted.
///
/// # Errors
/// The key is of a type without an order.
pub fn encode_sorted(key: &Bound<'_, PyAny>, descending: bool, to: &mut Vec<u8>) -> PyResult<()> {
    let start = to.len();
    let mut types = Types::default();
    Encoder { types: &mut types, to, only_ordered: true, numbers: 0, is_odd: false }.item(key, Nesting::Item, 0)?;
    if descending {
        to[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

/// The place of a part of a key.
#[derive(Clone, Copy)]
enum Nesting {
    Whole,
    /// In a tuple, or before other bytes.
    Item,
}

struct Encoder<'e> {
    types: &'e mut Types,
    to: &'e mut Vec<u8>,
    only_ordered: bool,
    /// How many numbers the key has so far.
    numbers: usize,
    /// Whether the key cannot be shown as what its bytes say.
    is_odd: bool,
}

impl Encoder<'_> {
    fn see(&mut self, kind: u8) {
        self.types.see(self.numbers, kind);
        self.numbers += 1;
    }

    fn float(&mut self, kind: u8, number: f64) {
        self.see(kind);
        self.to.push(NUMBER);
        self.to.extend_from_slice(&sortable(number).to_be_bytes());
        self.to.push(NOTHING);
    }

    fn item(&mut self, key: &Bound<'_, PyAny>, place: Nesting, depth: usize) -> PyResult<()> {
        if let Ok(text) = key.cast_exact::<PyString>() {
            match text.to_str() {
                Ok(text) => put(TEXT, text.as_bytes(), place, self.to),
                Err(_) => {
                    let bytes = text.call_method1(intern!(key.py(), "encode"), ("utf-8", "surrogatepass"))?;
                    put(TEXT, bytes.cast::<PyBytes>()?.as_bytes(), place, self.to);
                }
            }
        } else if let Ok(number) = key.cast_exact::<PyInt>() {
            self.see(INT);
            match number.extract() {
                Ok(small) => encode_small(small, self.to),
                Err(_) => encode_large(number, self.to)?,
            }
        } else if let Ok(number) = key.cast_exact::<PyFloat>() {
            self.float(FLOAT, number.value());
        } else if key.is_none() {
            self.to.push(NONE);
        } else if let Ok(is_true) = key.cast_exact::<PyBool>() {
            self.float(BOOL, f64::from(u8::from(is_true.is_true())));
        } else if let Ok(bytes) = key.cast_exact::<PyBytes>() {
            put(BYTES, bytes.as_bytes(), place, self.to);
        } else if let Ok(tuple) = key.cast_exact::<PyTuple>() {
            check_depth(depth)?;
            self.to.push(TUPLE);
            for item in tuple.iter() {
                self.item(&item, Nesting::Item, depth + 1)?;
            }
            self.to.push(END);
        } else {
            self.other(key, place, depth)?;
        }
        Ok(())
    }

    /// Appends a key that is not plain, by its canonical form.
    #[cold]
    fn other(&mut self, key: &Bound<'_, PyAny>, place: Nesting, depth: usize) -> PyResult<()> {
        check_depth(depth)?;
        let (kind, value, is_ordered): (u8, Bound<'_, PyAny>, bool) = match canonical(key) {
            Ok(form) => form.extract()?,
            Err(error) if self.only_ordered => return Err(as_order(key.py(), error)),
            Err(error) => return Err(error),
        };
        if self.only_ordered && !is_ordered {
            let why = key.py().import("gristmill.base.keys.forms")?.call_method1("no_order", (key.get_type(),))?;
            return Err(NoOrder::new_err(why.unbind()));
        }
        self.is_odd |= kind != PLAIN;
        match kind {
            PLAIN | EQUAL => self.item(&value, place, depth + 1),
            BETWEEN => {
                let (is_negative, towards_zero, terms): (bool, f64, Vec<Bound<'_, PyBytes>>) = value.extract()?;
                encode_between(is_negative, towards_zero, &terms, self.to);
                Ok(())
            }
            kind => {
                self.to.extend_from_slice(&[OTHER, kind]);
                let parts = value.cast::<PyTuple>()?;
                match kind {
                    SET | DICT => self.unordered(parts, depth)?,
                    _ => parts.iter().try_for_each(|part| self.item(&part, Nesting::Item, depth + 1))?,
                }
                self.to.push(END);
                Ok(())
            }
        }
    }

    /// Appends parts in the order of their bytes.
    fn unordered(&mut self, parts: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()> {
        let start = self.to.len();
        let mut encoded = Vec::new();
        for part in parts.iter() {
            self.item(&part, Nesting::Item, depth + 1)?;
            encoded.push(self.to.split_off(start));
        }
        encoded.sort_unstable();
        encoded.iter().for_each(|part| self.to.extend_from_slice(part));
        Ok(())
    }

    fn row(&mut self, key: BatchRow<'_, '_>, place: Nesting) {
        match key.item() {
            Item::None => self.to.push(NONE),
            Item::Bool(is_true) => self.float(BOOL, f64::from(u8::from(is_true))),
            Item::Int(number) => {
                self.see(INT);
                encode_small(number, self.to);
            }
            Item::Float(number) => self.float(FLOAT, number),
            Item::Text(text) => put(TEXT, text, place, self.to),
            Item::Bytes(bytes) => put(BYTES, bytes, place, self.to),
            Item::Tuple(parts) => {
                self.to.push(TUPLE);
                key.of(parts).for_each(|part| self.row(part, Nesting::Item));
                self.to.push(END);
            }
        }
    }
}

fn check_depth(depth: usize) -> PyResult<()> {
    match depth < DEPTH {
        true => Ok(()),
        false => Err(PyValueError::new_err("a key has keys in keys, more than 100 deep")),
    }
}

/// Returns the canonical form of a key.
fn canonical<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(key.py(), "gristmill.base.keys.canonical", "canonical")?.call1((key,))
}

/// Returns the error of a key that has no canonical form, where records are sorted.
fn as_order(py: Python<'_>, error: PyErr) -> PyErr {
    let why = error.value(py).getattr(intern!(py, "as_order"));
    why.map_or(error, |why| NoOrder::new_err(why.unbind()))
}

/// Appends text or bytes.
fn put(tag: u8, bytes: &[u8], place: Nesting, to: &mut Vec<u8>) {
    to.push(tag);
    if let Nesting::Whole = place {
        to.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        to.push(*byte);
        if *byte == 0 {
            to.push(0xff);
        }
    }
    to.extend_from_slice(&[0, 0]);
}

fn encode_small(number: i64, to: &mut Vec<u8>) {
    let magnitude = number.unsigned_abs();
    let shift = (u64::BITS - magnitude.leading_zeros()).saturating_sub(MANTISSA_BITS);
    let towards_zero = magnitude >> shift << shift;
    let left = (magnitude - towards_zero).to_be_bytes();
    encode_sum(number < 0, towards_zero as f64, &left, to);
}

fn encode_large(number: &Bound<'_, PyInt>, to: &mut Vec<u8>) -> PyResult<()> {
    let py = number.py();
    let magnitude = number.call_method0(intern!(py, "__abs__"))?;
    let bits: u64 = number.call_method0(intern!(py, "bit_length"))?.extract()?;
    let towards_zero = if bits > u64::from(FLOAT_BITS_MAX) {
        f64::MAX
    } else {
        let mantissa: u64 = magnitude.call_method1("__rshift__", (bits - u64::from(MANTISSA_BITS),))?.extract()?;
        let hidden = 1 << (MANTISSA_BITS - 1);
        f64::from_bits((bits - 1 + 1023) << (MANTISSA_BITS - 1) | (mantissa & (hidden - 1)))
    };
    let float = PyFloat::new(py, towards_zero).call_method0(intern!(py, "__int__"))?;
    let left = magnitude.sub(float)?;
    let bytes = left.call_method1(intern!(py, "to_bytes"), (bits.div_ceil(8), "big"))?;
    encode_sum(number.lt(0)?, towards_zero, bytes.cast::<PyBytes>()?.as_bytes(), to);
    Ok(())
}

/// Appends an int: the float towards zero from it, and the distance, which may begin with zeros.
fn encode_sum(is_negative: bool, towards_zero: f64, left: &[u8], to: &mut Vec<u8>) {
    to.push(NUMBER);
    to.extend_from_slice(&sortable(if is_negative { -towards_zero } else { towards_zero }).to_be_bytes());
    let zeros = left.iter().take_while(|byte| **byte == 0).count();
    let left = &left[zeros..];
    if left.is_empty() {
        return to.push(NOTHING);
    }
    to.push(if is_negative { LESS } else { MORE });
    put_term(left, true, flip(is_negative), to);
}

/// Appends a number between two floats: the one towards zero, and the distance from it as a continued fraction.
fn encode_between(is_negative: bool, towards_zero: f64, terms: &[Bound<'_, PyBytes>], to: &mut Vec<u8>) {
    to.push(NUMBER);
    to.extend_from_slice(&sortable(towards_zero).to_be_bytes());
    to.push(if is_negative { LESS } else { MORE });
    let mut flip = flip(is_negative);
    for (number, term) in terms.iter().enumerate() {
        put_term(term.as_bytes(), number + 1 == terms.len(), flip, to);
        flip = !flip;
    }
}

/// Returns what the bytes of a distance are changed by.
fn flip(is_negative: bool) -> u8 {
    if is_negative { 0xff } else { 0 }
}

/// Appends a whole number without zeros in front, and whether it is the last term of a distance.
fn put_term(number: &[u8], is_last: bool, flip: u8, to: &mut Vec<u8>) {
    let start = to.len();
    if number.len() < usize::from(LONG) {
        to.push(number.len() as u8);
    } else {
        to.push(LONG);
        to.extend_from_slice(&(number.len() as u32).to_be_bytes());
    }
    to.extend_from_slice(number);
    to.push(if is_last { NOTHING } else { MORE });
    to[start..].iter_mut().for_each(|byte| *byte ^= flip);
}

/// Returns bits whose order is that of the floats. All zeros are one number, and so are all NaNs, which is the
/// greatest.
fn sortable(number: f64) -> u64 {
    let bits = match number {
        0.0 => 0,
        number if number.is_nan() => f64::NAN.to_bits() & !(1 << 63),
        number => number.to_bits(),
    };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the float of [`sortable`] bits.
fn unsorted(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

/// Reads a key back. `types` are those of all keys that are equal to it.
pub fn decode<'py>(py: Python<'py>, bytes: &[u8], types: Types) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader { py, rest: bytes, types, numbers: 0 };
    let key = reader.item(Nesting::Whole)?;
    match reader.rest {
        [] => Ok(key),
        _ => Err(damaged()),
    }
}

/// Returns the text that a key is, in UTF-8; `None` if it is no text, or has lone surrogates.
pub fn as_text(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(&[TEXT]).filter(|text| str::from_utf8(text).is_ok())
}

/// Returns the int that a key is; `None` if it is another type, or has 63 bits or more.
pub fn as_int(key: &[u8], types: Types) -> Option<i64> {
    if types.at(0) & INT == 0 && types != Types::default() {
        return None;
    }
    let (bits, rest) = key.strip_prefix(&[NUMBER])?.split_first_chunk()?;
    let towards_zero = unsorted(u64::from_be_bytes(*bits));
    if towards_zero.fract() != 0.0 || towards_zero.abs() >= (1u64 << 62) as f64 {
        return None;
    }
    let flip = match *rest.first()? {
        NOTHING => return Some(towards_zero as i64),
        MORE => 0,
        _ => 0xff,
    };
    // Behind the mark of the distance there is its length, and at the end that it has no rest.
    let left = rest.get(2..rest.len() - 1)?.iter().fold(0, |left, byte| left << 8 | i64::from(byte ^ flip));
    Some(towards_zero as i64 + if flip == 0 { left } else { -left })
}

struct Reader<'py, 'k> {
    py: Python<'py>,
    rest: &'k [u8],
    types: Types,
    /// How many numbers were read.
    numbers: usize,
}

fn damaged() -> PyErr {
    PyValueError::new_err("a key was damaged on its way from a worker")
}

impl<'py, 'k> Reader<'py, 'k> {
    fn byte(&mut self) -> PyResult<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(*first)
    }

    fn item(&mut self, place: Nesting) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let tag = self.byte()?;
        let types = self.types.at(self.numbers);
        self.numbers += usize::from(tag == NUMBER);
        match tag {
            NONE => Ok(py.None().into_bound(py)),
            NUMBER => self.number(types),
            TEXT => {
                let bytes = self.taken(place)?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(PyString::new(py, text).into_any()),
                    Err(_) => PyBytes::new(py, &bytes).call_method1("decode", ("utf-8", "surrogatepass")),
                }
            }
            BYTES => Ok(PyBytes::new(py, &self.taken(place)?).into_any()),
            TUPLE => {
                let mut items = Vec::new();
                while self.rest.first().is_some_and(|tag| *tag != END) {
                    items.push(self.item(Nesting::Item)?);
                }
                self.byte()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
            _ => Err(damaged()),
        }
    }

    /// Takes the text or bytes that follow.
    fn taken(&mut self, place: Nesting) -> PyResult<Cow<'k, [u8]>> {
        if let Nesting::Whole = place {
            return Ok(Cow::Borrowed(std::mem::take(&mut self.rest)));
        }
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Ok(Cow::Owned(bytes)),
                    _ => bytes.push(0),
                },
                byte => bytes.push(byte),
            }
        }
    }

    /// Takes a number; what it is shown as says `types`: an int if one of the keys was one there, or else a float, or
    /// else a bool.
    fn number(&mut self, types: u8) -> PyResult<Bound<'py, PyAny>> {
        let (bits, rest) = self.rest.split_first_chunk().ok_or_else(damaged)?;
        self.rest = rest;
        let py = self.py;
        let towards_zero = unsorted(u64::from_be_bytes(*bits));
        let float = PyFloat::new(py, towards_zero).into_any();
        let mark = self.byte()?;
        if mark != NOTHING {
            let left = self.left(if mark == LESS { 0xff } else { 0 })?;
            let left = py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, &left), "big"))?;
            let int = float.call_method0("__int__")?;
            return if mark == LESS { int.sub(left) } else { int.add(left) };
        }
        let is_float = types & FLOAT != 0 && types & INT == 0;
        if is_float || towards_zero.fract() != 0.0 || !towards_zero.is_finite() {
            return Ok(float);
        }
        if types == BOOL {
            return Ok(PyBool::new(py, towards_zero != 0.0).to_owned().into_any());
        }
        match towards_zero.abs() < (1u64 << 63) as f64 {
            true => Ok((towards_zero as i64).into_pyobject(py)?.into_any()),
            false => float.call_method0("__int__"),
        }
    }

    /// Takes the distance of an int from its float.
    fn left(&mut self, flip: u8) -> PyResult<Vec<u8>> {
        let count = match self.byte()? ^ flip {
            LONG => {
                let (count, rest) = self.rest.split_first_chunk::<4>().ok_or_else(damaged)?;
                self.rest = rest;
                u32::from_be_bytes(count.map(|byte| byte ^ flip)) as usize
            }
            count => usize::from(count),
        };
        let (left, rest) = self.rest.split_at_checked(count).ok_or_else(damaged)?;
        self.rest = rest;
        match self.byte()? ^ flip {
            NOTHING => Ok(left.iter().map(|byte| byte ^ flip).collect()),
            _ => Err(damaged()),
        }
    }
}
