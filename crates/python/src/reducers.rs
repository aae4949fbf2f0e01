//! Known reducers, which combine numbers natively; several of them at once have a state as bytes.
//!
//! A state has the number of values (8 bytes), and for each reducer but `count` what its numbers are (1 byte) and what
//! they have come to (8 bytes).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::values;

/// A reducer of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    Sum,
    Mean,
    Min,
    Max,
    Count,
}

impl By {
    fn named(name: &str) -> PyResult<By> {
        Ok(match name {
            "sum" => By::Sum,
            "mean" => By::Mean,
            "min" => By::Min,
            "max" => By::Max,
            "count" => By::Count,
            _ => return Err(PyValueError::new_err(format!("no reducer of numbers is named {name}"))),
        })
    }

    /// Combines two ints; `None` if the sum is too large for one.
    #[inline(always)]
    pub fn ints(self, a: i64, b: i64) -> Option<i64> {
        match self {
            By::Min => Some(a.min(b)),
            By::Max => Some(a.max(b)),
            _ => a.checked_add(b),
        }
    }

    /// Combines two floats. NaN is the greatest number.
    #[inline(always)]
    pub fn floats(self, a: f64, b: f64) -> f64 {
        match self {
            By::Min if a.is_nan() => b,
            By::Min => a.min(b),
            By::Max if a.is_nan() || b.is_nan() => f64::NAN,
            By::Max => a.max(b),
            _ => a + b,
        }
    }

    /// Appends what `count` ints have come to.
    pub fn append_int(self, value: i64, count: u64, to: &mut Vec<u8>) {
        match self {
            By::Mean => values::encode_mean(value, count, to),
            _ => values::encode_i64(value, to),
        }
    }

    /// Appends what `count` floats have come to.
    pub fn append_float(self, value: f64, count: u64, to: &mut Vec<u8>) {
        // Python adds to 0, so no sum is -0.0.
        let value = match self {
            By::Mean => (value + 0.0) / count as f64,
            By::Sum => value + 0.0,
            _ => value,
        };
        values::encode_f64(value, to);
    }
}

/// Several reducers, of a value or of its fields.
#[pyclass(frozen, from_py_object)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reducers {
    of: [Option<One>; MOST],
    /// The length of the result, if it is a tuple with an item for each part.
    parts: Option<u8>,
}

/// The most reducers of a key.
const MOST: usize = 12;

/// One of several reducers, and the field that it reduces, of how many; `None` if it is the whole value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct One {
    by: By,
    field: Option<(u8, u8)>,
}

/// A reducer by name, or one for each field.
#[derive(FromPyObject)]
enum Named {
    Whole(String),
    Fields(Vec<String>),
}

#[pymethods]
impl Reducers {
    /// The result is what one part makes, or a tuple of what several make. Raises `ValueError` for more reducers than
    /// `MOST`.
    #[new]
    fn new(parts: Vec<Named>) -> PyResult<Reducers> {
        let count = parts.len();
        let mut all = Vec::new();
        for part in parts {
            match part {
                Named::Whole(name) => all.push(One { by: By::named(&name)?, field: None }),
                Named::Fields(names) => {
                    for (at, name) in names.iter().enumerate() {
                        all.push(One { by: By::named(name)?, field: Some((at as u8, names.len() as u8)) });
                    }
                }
            }
        }
        // Longer parts are refused, so numbers of fields fit a byte.
        let mut of = [None; MOST];
        let places = of.get_mut(..all.len()).ok_or_else(|| PyValueError::new_err("too many reducers"))?;
        places.iter_mut().zip(all).for_each(|(place, one)| *place = Some(one));
        Ok(Reducers { of, parts: (count > 1).then_some(count as u8) })
    }

    #[classattr]
    #[pyo3(name = "MOST")]
    fn most() -> usize {
        MOST
    }
}

/// The result so far of a reducer.
#[derive(Clone, Copy)]
pub enum Partial {
    Int(i64),
    Float(f64),
}

impl Partial {
    fn write(self, to: &mut [u8; PARTIAL_BYTES]) {
        let (kind, bytes) = match self {
            Partial::Int(number) => (0, number.to_le_bytes()),
            Partial::Float(number) => (1, number.to_le_bytes()),
        };
        to[0] = kind;
        to[1..].copy_from_slice(&bytes);
    }

    fn read([kind, bytes @ ..]: [u8; PARTIAL_BYTES]) -> Partial {
        match kind {
            0 => Partial::Int(i64::from_le_bytes(bytes)),
            _ => Partial::Float(f64::from_le_bytes(bytes)),
        }
    }
}

const COUNT_BYTES: usize = 8;
const PARTIAL_BYTES: usize = 9;

/// Returns the parts of a state.
fn parts(state: &[u8]) -> (u64, &[[u8; PARTIAL_BYTES]]) {
    let (count, numbers) = state.split_first_chunk::<COUNT_BYTES>().expect("a state begins with a number");
    (u64::from_le_bytes(*count), numbers.as_chunks().0)
}

impl Reducers {
    fn all(&self) -> impl Iterator<Item = One> {
        self.of.iter().map_while(|one| *one)
    }

    /// Writes the state of a single value. `partial` reads the number that a reducer starts with, from the whole value
    /// or from one field, given as its place and the number of fields; it returns `None` if that is no number.
    pub fn begin(
        &self,
        mut partial: impl FnMut(By, Option<(u8, u8)>) -> Option<Partial>,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        to.extend_from_slice(&1u64.to_le_bytes());
        for One { by, field } in self.all() {
            let partial = partial(by, field)?;
            if by != By::Count {
                let mut bytes = [0; PARTIAL_BYTES];
                partial.write(&mut bytes);
                to.extend_from_slice(&bytes);
            }
        }
        Some(())
    }

    /// Adds one state to another; `None` if the sum of ints is too large for one, or if ints meet floats.
    pub fn merge(&self, to: &mut [u8], from: &[u8]) -> Option<()> {
        let ((count, _), (more, others)) = (parts(to), parts(from));
        let (count_bytes, numbers) = to.split_first_chunk_mut::<COUNT_BYTES>().expect("a state begins with a number");
        *count_bytes = (count + more).to_le_bytes();
        let pairs = numbers.as_chunks_mut().0.iter_mut().zip(others);
        for (One { by, .. }, (number, other)) in self.all().filter(|one| one.by != By::Count).zip(pairs) {
            match (Partial::read(*number), Partial::read(*other)) {
                (Partial::Int(a), Partial::Int(b)) => Partial::Int(by.ints(a, b)?),
                (Partial::Float(a), Partial::Float(b)) => Partial::Float(by.floats(a, b)),
                _ => return None,
            }
            .write(number);
        }
        Some(())
    }

    /// Appends the result that a state stands for.
    pub fn append(&self, state: &[u8], to: &mut Vec<u8>) {
        let (count, numbers) = parts(state);
        let mut numbers = numbers.iter().map(|number| Partial::read(*number));
        if let Some(parts) = self.parts {
            values::begin_tuple(parts.into(), to);
        }
        for One { by, field } in self.all() {
            if let Some((0, of)) = field {
                values::begin_tuple(of.into(), to);
            }
            match by {
                By::Count => values::encode_i64(count as i64, to),
                _ => match numbers.next().expect("a state has a number for each reducer") {
                    Partial::Int(number) => by.append_int(number, count, to),
                    Partial::Float(number) => by.append_float(number, count, to),
                },
            }
        }
    }
}
