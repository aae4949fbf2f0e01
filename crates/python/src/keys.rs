//! Keys as bytes whose order is that of Python, and which are the same bytes if Python says that the keys are equal.
//!
//! ```text
//!  None     10
//!  number   20 negative | 21 zero | 22 positive | 23 NaN, then the exponent and the bits after the first one
//!  str      30, UTF-8 (lone surrogates are encoded like other characters)
//!  bytes    40, the bytes
//!  tuple    50, its items, 00
//!  other    60, the pickle
//! ```
//!
//! Text and bytes in a tuple end with `00 00`, and a zero in them is written as `00 ff`; a key of its own needs neither.
//!
//! As in a dict, `1`, `1.0` and `True` are one key. Which of them a result shows is known from [`Types`], which travel with
//! the values: `1` if there was an int among them. Unlike in a dict, NaN is equal to NaN. Keys of other types are the
//! same if their pickles are. `python/gristmill/keys.py` says the same in Python.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

use crate::exceptions::NoOrder;
use crate::pickles::{pickle, unpickle};

const NONE: u8 = 0x10;
const NEGATIVE: u8 = 0x20;
const ZERO: u8 = 0x21;
const POSITIVE: u8 = 0x22;
const NAN: u8 = 0x23;
const TEXT: u8 = 0x30;
const BYTES: u8 = 0x40;
const TUPLE: u8 = 0x50;
const PICKLE: u8 = 0x60;
/// Ends a tuple; below every tag.
const END: u8 = 0x00;

/// The exponent of infinity. That of the largest integer is smaller: it has 2 ^ 31 bits at most.
const INFINITE: u32 = u32::MAX;
/// Added to exponents, so that those of small fractions are positive.
const BIAS: i64 = 2048;

/// The numbers in a key whose types are told apart, in the order in which they are written. Later ones share the last
/// place.
const PLACES: usize = 10;
/// The depth of tuples in tuples.
const DEPTH: usize = 100;

/// The types of the numbers in a key: three bits for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(pub u32);

const INT: u8 = 1;
const FLOAT: u8 = 2;
const BOOL: u8 = 4;

impl Types {
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
    Encoder { types, to, only_ordered: false, numbers: 0 }.item(key, Place::Whole, 0)
}

/// Appends the bytes of a key by which records are sorted. They are no prefix of those of another key, so others may
/// follow; if the order is `descending`, they are inverted.
///
/// # Errors
/// The key is of a type without an order.
pub fn encode_sorted(key: &Bound<'_, PyAny>, descending: bool, to: &mut Vec<u8>) -> PyResult<()> {
    let start = to.len();
    let mut types = Types::default();
    Encoder { types: &mut types, to, only_ordered: true, numbers: 0 }.item(key, Place::Item, 0)?;
    if descending {
        to[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

/// The place of a part of a key.
#[derive(Clone, Copy)]
enum Place {
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
}

impl Encoder<'_> {
    fn see(&mut self, kind: u8) {
        self.types.see(self.numbers, kind);
        self.numbers += 1;
    }

    fn item(&mut self, key: &Bound<'_, PyAny>, place: Place, depth: usize) -> PyResult<()> {
        if let Ok(text) = key.cast_exact::<PyString>() {
            self.to.push(TEXT);
            match text.to_str() {
                Ok(text) => put(text.as_bytes(), place, self.to),
                Err(_) => {
                    let bytes = text.call_method1(intern!(key.py(), "encode"), ("utf-8", "surrogatepass"))?;
                    put(bytes.cast::<PyBytes>()?.as_bytes(), place, self.to);
                }
            }
        } else if let Ok(number) = key.cast_exact::<PyInt>() {
            self.see(INT);
            encode_int(number, self.to)?;
        } else if let Ok(number) = key.cast_exact::<PyFloat>() {
            self.see(FLOAT);
            encode_float(number.value(), self.to);
        } else if key.is_none() {
            self.to.push(NONE);
        } else if let Ok(is_true) = key.cast_exact::<PyBool>() {
            self.see(BOOL);
            encode_u64(u64::from(is_true.is_true()), self.to);
        } else if let Ok(bytes) = key.cast_exact::<PyBytes>() {
            self.to.push(BYTES);
            put(bytes.as_bytes(), place, self.to);
        } else if let Ok(tuple) = key.cast_exact::<PyTuple>() {
            if depth == DEPTH {
                return Err(PyValueError::new_err("a key has tuples in tuples, more than 100 deep"));
            }
            self.to.push(TUPLE);
            for item in tuple.iter() {
                self.item(&item, Place::Item, depth + 1)?;
            }
            self.to.push(END);
        } else if self.only_ordered {
            let kind = key.get_type().name()?;
            let why = format!("keys of the type {kind} have no order; sort by numbers, text, bytes or tuples of these");
            return Err(NoOrder::new_err(why));
        } else {
            self.to.push(PICKLE);
            put(pickle(key)?.as_bytes(), place, self.to);
        }
        Ok(())
    }
}

/// Appends text or bytes.
fn put(bytes: &[u8], place: Place, to: &mut Vec<u8>) {
    if let Place::Whole = place {
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

fn encode_int(number: &Bound<'_, PyInt>, to: &mut Vec<u8>) -> PyResult<()> {
    match number.extract::<i64>() {
        Ok(number) if number < 0 => {
            let start = to.len();
            encode_u64(number.unsigned_abs(), to);
            negate(&mut to[start..]);
            Ok(())
        }
        Ok(number) => {
            encode_u64(number as u64, to);
            Ok(())
        }
        Err(_) => encode_large(number, to),
    }
}

fn encode_u64(number: u64, to: &mut Vec<u8>) {
    if number == 0 {
        to.push(ZERO);
        return;
    }
    let exponent = 63 - i64::from(number.leading_zeros());
    // Without the first bit, which is always one.
    let bits = if exponent == 0 { 0 } else { number << (64 - exponent) };
    positive(exponent, &bits.to_be_bytes(), to);
}

fn encode_float(number: f64, to: &mut Vec<u8>) {
    if number.is_nan() {
        to.push(NAN);
    } else if number == 0.0 {
        to.push(ZERO);
    } else {
        let start = to.len();
        let bits = number.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i64, bits << 12);
        match exponent {
            0x7ff => infinite(to),
            // Below the smallest normal number the first bit is not implied.
            0 => {
                let zeros = fraction.leading_zeros();
                let rest = fraction.checked_shl(zeros + 1).unwrap_or(0);
                positive(-1023 - i64::from(zeros), &rest.to_be_bytes(), to);
            }
            _ => positive(exponent - 1023, &fraction.to_be_bytes(), to),
        }
        if number < 0.0 {
            negate(&mut to[start..]);
        }
    }
}

fn encode_large(number: &Bound<'_, PyInt>, to: &mut Vec<u8>) -> PyResult<()> {
    let py = number.py();
    let absolute = number.call_method0(intern!(py, "__abs__"))?;
    let length: i64 = number.call_method0(intern!(py, "bit_length"))?.extract()?;
    let exponent = length - 1;
    if exponent + BIAS >= i64::from(INFINITE) {
        return Err(PyValueError::new_err("an int of more than 500 MB cannot be a key"));
    }
    // All bits after the first, aligned to the left.
    let bytes = (exponent as usize).div_ceil(8);
    let rest = absolute.call_method1("__sub__", (1u8.into_pyobject(py)?.call_method1("__lshift__", (exponent,))?,))?;
    let rest = rest.call_method1("__lshift__", (bytes as i64 * 8 - exponent,))?;
    let rest = rest.call_method1("to_bytes", (bytes, "big"))?;
    let start = to.len();
    positive(exponent, rest.cast::<PyBytes>()?.as_bytes(), to);
    if number.lt(0)? {
        negate(&mut to[start..]);
    }
    Ok(())
}

/// Appends a positive number, `1.bits * 2 ^ exponent`: the exponent, and the bits by seven, each seven with a bit that
/// says whether more follow. So a number is a prefix of no other, and more bits are greater.
fn positive(exponent: i64, bits: &[u8], to: &mut Vec<u8>) {
    to.push(POSITIVE);
    to.extend_from_slice(&((exponent + BIAS) as u32).to_be_bytes());
    let zeros = bits.iter().rev().take_while(|byte| **byte == 0).count();
    let bits = &bits[..bits.len() - zeros];
    let (mut rest, mut count) = (0u32, 0u32);
    let mut bytes = bits.iter();
    loop {
        while count < 7
            && let Some(byte) = bytes.next()
        {
            rest = rest << 8 | u32::from(*byte);
            count += 8;
        }
        let seven = if count >= 7 { rest >> (count - 7) } else { rest << (7 - count) } & 0x7f;
        count = count.saturating_sub(7);
        rest &= (1 << count) - 1;
        let more = rest != 0 || bytes.as_slice().iter().any(|byte| *byte != 0);
        to.push((seven as u8) << 1 | u8::from(more));
        if !more {
            return;
        }
    }
}

fn infinite(to: &mut Vec<u8>) {
    to.push(POSITIVE);
    to.extend_from_slice(&INFINITE.to_be_bytes());
    to.push(0);
}

/// Turns the bytes of a positive number into those of its negative.
fn negate(bytes: &mut [u8]) {
    bytes[0] = NEGATIVE;
    bytes[1..].iter_mut().for_each(|byte| *byte = !*byte);
}

/// Reads a key back. `types` are those of all keys that are equal to it.
pub fn decode<'py>(py: Python<'py>, bytes: &[u8], types: Types) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader { py, rest: bytes, types, numbers: 0 };
    let key = reader.item(Place::Whole)?;
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
    let (tag, rest) = key.split_first()?;
    let flip = match *tag {
        ZERO => return Some(0),
        POSITIVE => 0,
        NEGATIVE => 0xff,
        _ => return None,
    };
    let (exponent, sevens) = rest.split_first_chunk()?;
    let exponent = i64::from(u32::from_be_bytes(exponent.map(|byte| byte ^ flip))) - BIAS;
    if !(0..62).contains(&exponent) {
        return None;
    }
    let sevens: u128 = sevens.iter().fold(0, |bits, byte| bits << 7 | u128::from((byte ^ flip) >> 1));
    let count = 7 * (rest.len() as i64 - 4);
    // The bits after the first one are aligned to the left; an int has no more of them than its exponent says.
    let after = if count > exponent { sevens >> (count - exponent) } else { sevens << (exponent - count) };
    if count > exponent && after << (count - exponent) != sevens {
        return None;
    }
    let number = 1i64 << exponent | after as i64;
    Some(if flip == 0 { number } else { -number })
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

impl<'py> Reader<'py, '_> {
    fn byte(&mut self) -> PyResult<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(*first)
    }

    fn item(&mut self, place: Place) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let tag = self.byte()?;
        let types = self.types.at(self.numbers);
        self.numbers += usize::from((NEGATIVE..=NAN).contains(&tag));
        match tag {
            NONE => Ok(py.None().into_bound(py)),
            ZERO => whole(py, types, 0),
            tag @ (POSITIVE | NEGATIVE) => self.number(tag == NEGATIVE, types),
            NAN => Ok(PyFloat::new(py, f64::NAN).into_any()),
            TEXT => {
                let bytes = self.taken(place)?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(PyString::new(py, text).into_any()),
                    Err(_) => PyBytes::new(py, &bytes).call_method1("decode", ("utf-8", "surrogatepass")),
                }
            }
            BYTES => Ok(PyBytes::new(py, &self.taken(place)?).into_any()),
            PICKLE => unpickle(py, &self.taken(place)?),
            TUPLE => {
                let mut items = Vec::new();
                while self.rest.first().is_some_and(|tag| *tag != END) {
                    items.push(self.item(Place::Item)?);
                }
                self.byte()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
            _ => Err(damaged()),
        }
    }

    /// Takes the text or bytes that follow.
    fn taken(&mut self, place: Place) -> PyResult<Vec<u8>> {
        if let Place::Whole = place {
            return Ok(std::mem::take(&mut self.rest).to_vec());
        }
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Ok(bytes),
                    _ => bytes.push(0),
                },
                byte => bytes.push(byte),
            }
        }
    }

    fn number(&mut self, is_negative: bool, types: u8) -> PyResult<Bound<'py, PyAny>> {
        let flip = if is_negative { 0xff } else { 0 };
        let mut exponent = [0; 4];
        for byte in &mut exponent {
            *byte = self.byte()? ^ flip;
        }
        let exponent = u32::from_be_bytes(exponent);
        let mut sevens = Vec::new();
        loop {
            let byte = self.byte()? ^ flip;
            sevens.push(byte >> 1);
            if byte & 1 == 0 {
                break;
            }
        }
        let py = self.py;
        if exponent == INFINITE {
            return Ok(PyFloat::new(py, if is_negative { f64::NEG_INFINITY } else { f64::INFINITY }).into_any());
        }
        let exponent = i64::from(exponent) - BIAS;
        // The last bit that is set decides whether it is a whole number.
        let zeros = sevens.last().map_or(7, |last| if *last == 0 { 7 } else { i64::from(last.trailing_zeros()) });
        let bits = sevens.len() as i64 * 7 - zeros;
        let is_whole = exponent >= bits.max(0);
        let is_float = types & FLOAT != 0 && types & INT == 0;
        if is_whole && exponent < 63 && !is_float {
            let mut number = 1u64;
            for at in 0..exponent {
                number = number << 1 | u64::from(bit(&sevens, at));
            }
            return whole(py, types, if is_negative { -(number as i64) } else { number as i64 });
        }
        if !is_whole || is_float {
            return Ok(PyFloat::new(py, fraction(exponent, &sevens, is_negative)).into_any());
        }
        // A large int: built of its bits, from the first on.
        let mut bytes = vec![0u8; (exponent as usize + 1).div_ceil(8)];
        let last = bytes.len() * 8 - 1;
        let mut set = |at: usize| bytes[(last - at) / 8] |= 1 << (at % 8);
        set(exponent as usize);
        (0..exponent).filter(|at| bit(&sevens, *at)).for_each(|at| set((exponent - 1 - at) as usize));
        let number = py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, &bytes), "big"))?;
        if is_negative { number.neg() } else { Ok(number) }
    }
}

/// Returns the bit `at` places after the first one.
fn bit(sevens: &[u8], at: i64) -> bool {
    sevens.get(at as usize / 7).is_some_and(|seven| seven >> (6 - at % 7) & 1 == 1)
}

/// Returns a number that came from a float, so no bit is lost.
fn fraction(exponent: i64, sevens: &[u8], is_negative: bool) -> f64 {
    let sign = u64::from(is_negative) << 63;
    let mantissa = (0..52).fold(0u64, |bits, at| bits << 1 | u64::from(bit(sevens, at)));
    let bits = match exponent {
        -1022.. => (exponent + 1023) as u64 & 0x7ff,
        _ => return f64::from_bits(sign | (1 << 52 | mantissa) >> (-1022 - exponent)),
    };
    f64::from_bits(sign | bits << 52 | mantissa)
}

/// Returns a whole number as what one of the keys had there: an int, or else a float, or else a bool.
fn whole(py: Python<'_>, types: u8, number: i64) -> PyResult<Bound<'_, PyAny>> {
    Ok(match types {
        types if types & INT == 0 && types & FLOAT != 0 => PyFloat::new(py, number as f64).into_any(),
        BOOL => PyBool::new(py, number != 0).to_owned().into_any(),
        _ => number.into_pyobject(py)?.into_any(),
    })
}
