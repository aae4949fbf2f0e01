//! Linear regression: fits a straight line through pairs of numbers by least squares.
//!
//! Pairs are read from bytes (x, then y, as in Phoenix) or from two columns of CSV files. Every chunk is summed in
//! registers; six sums per chunk are emitted.

use std::marker::PhantomData;

use gristmill::{Chunk, Emit, Input, Job, MapReduce, Outcome, ProgramError, Records, Summary};
use gristmill_os::vectors::with_widest;

use crate::columns::{Column, Table};
use crate::error::{Error, Result, whole_records};
use crate::heading::Dialect;
use crate::number::{Number, finite};
use crate::sum::{self, Sum};

/// A fitted line, `y = slope * x + intercept`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The number of pairs.
    pub n: u64,
    /// The change of y per unit of x.
    pub slope: f64,
    /// The y where x is 0.
    pub intercept: f64,
    /// Pearson's correlation coefficient, -1 to 1; `None` if every y is the same.
    pub r: Option<f64>,
}

/// Keys of the sums.
const N: u8 = 0;
const X: u8 = 1;
const Y: u8 = 2;
const XX: u8 = 3;
const YY: u8 = 4;
const XY: u8 = 5;
const SUMS: usize = 6;

/// Sums over byte pairs. Exact: 64 bits hold the squares of 10^14 pairs.
pub struct BytePairs;

impl BytePairs {
    /// Fits a line through the byte pairs of `input`; `run` runs the job.
    ///
    /// # Errors
    /// A file with an odd number of bytes, fewer than two pairs, the same x in all pairs; an error of `run`.
    pub fn fit<E: From<Error>>(
        mut input: Input,
        run: impl FnOnce(Job<'_, BytePairs>) -> std::result::Result<Outcome<BytePairs>, E>,
    ) -> std::result::Result<(Line, Summary), E> {
        whole_records(&mut input, 2, "byte pairs need an even number")?;
        let (pairs, summary) = run(Job::new(&BytePairs, input).records(Records::Fixed(2)))?;
        let mut sums = [0u64; SUMS];
        pairs.iter().for_each(|(key, sum)| sums[usize::from(key)] = sum);
        let [n, x, y, xx, yy, xy] = sums.map(i128::from);
        let line = line(
            sums[0],
            (n * xx - x * x) as f64,
            (n * yy - y * y) as f64,
            (n * xy - x * y) as f64,
            x as f64,
            y as f64,
        );
        Ok((line?, summary))
    }
}

/// Returns the line for `n` pairs with these sums of x and y, and n times the sums of squares and products about the
/// means.
fn line(n: u64, xx: f64, yy: f64, xy: f64, x: f64, y: f64) -> Result<Line> {
    if n < 2 {
        return Err(Error::Question(format!("a line needs two pairs or more, and there are {n}")));
    }
    if xx <= 0.0 {
        return Err(Error::Question(format!("x is {} in all {n} pairs: no line has a slope there", x / n as f64)));
    }
    let slope = xy / xx;
    let intercept = (y - slope * x) / n as f64;
    Ok(Line { n, slope, intercept, r: (yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0)) })
}

impl MapReduce for BytePairs {
    type Key = u8;
    type Value = u64;

    fn keys(&self) -> Option<usize> {
        Some(SUMS)
    }

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
        let bytes = chunk.bytes();
        let sums = with_widest(|| sum_pairs(bytes));
        out.emit(N, bytes.len() as u64 / 2);
        for (key, sum) in [X, Y, XX, YY, XY].into_iter().zip(sums) {
            out.emit(key, sum);
        }
        Ok(())
    }
}

/// Returns the sums of x, y, xx, yy, xy.
#[inline(always)]
fn sum_pairs(bytes: &[u8]) -> [u64; 5] {
    let mut sums = [0; 5];
    // 2048 pairs add at most 2048 x 255 x 255 < 2^27 to a 32-bit sum. The compiler turns the loop into
    // multiply-and-add of 16-bit lanes.
    for stretch in bytes.chunks(4096) {
        let mut part = [0i32; 5];
        for pair in stretch.as_chunks::<2>().0 {
            let pair = u16::from_le_bytes(*pair);
            let (x, y) = (i32::from((pair & 0xff) as i16), i32::from((pair >> 8) as i16));
            part[0] += x;
            part[1] += y;
            part[2] += x * x;
            part[3] += y * y;
            part[4] += x * y;
        }
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += part as u64;
        }
    }
    sums
}

/// Sums over two columns of CSV files. Numbers are summed relative to the first pair, so that columns far from zero
/// lose no digits. If `S` is [`BinnedSum`](crate::BinnedSum), neither the sums nor the line depend on the order of
/// the rows.
///
/// As in SQL, a pair with an empty number is left out.
pub struct Columns<S> {
    /// The places of x and y.
    table: Table<2>,
    /// The first pair.
    origin: [f64; 2],
    strict: bool,
    sums: PhantomData<fn() -> S>,
}

/// The result of a fit through columns.
pub struct Fit {
    /// The line.
    pub line: Line,
    /// The number of rows without a number in one of the columns.
    pub left_out: u64,
    /// Guesses about the input, one sentence each, for the caller to show.
    pub notes: Vec<String>,
}

impl<S: Sum> Columns<S> {
    /// Fits a line through two columns, x and y, of the CSV files of `input`; `run` runs the job. If `strict`, a row
    /// without a number is refused.
    ///
    /// # Errors
    /// A column that does not exist, a field that is not a finite number (with file, line, and column), fewer than
    /// two pairs, the same x in all pairs; an error of `run`.
    pub fn fit<E: From<Error>>(
        mut input: Input,
        dialect: &Dialect,
        columns: [Column; 2],
        strict: bool,
        run: impl FnOnce(Job<'_, Columns<S>>) -> std::result::Result<Outcome<Columns<S>>, E>,
    ) -> std::result::Result<(Fit, Summary), E> {
        let sources = input.sources().map_err(Error::from)?;
        let Some(mut table) = Table::look(sources, dialect, &columns, [true; 2])? else {
            return Err(Error::Question("a line needs two pairs or more, and the input is empty".into()).into());
        };
        let notes = std::mem::take(&mut table.notes);
        // A field that is not a number is ignored here; the job finds it again and reports it.
        let origin =
            table.first.as_ref().map_or([0.0; 2], |row| row.each_ref().map(|field| finite(field).unwrap_or(0.0)));
        let columns = Columns { origin, table, strict, sums: PhantomData };
        let (pairs, summary) = run(Job::new(&columns, input).records(columns.table.records()))?;
        let mut sums = [0.0; SUMS];
        let mut left_out = 0;
        pairs.iter().for_each(|(key, sum)| match sum.rows_left_out() {
            Some(counted) => left_out = counted.rows,
            None => sums[usize::from(key)] = sum.nearest(),
        });
        let [n, x, y, xx, yy, xy] = sums;
        let [x0, y0] = columns.origin;
        let spread = [n * xx - x * x, n * yy - y * y, n * xy - x * y];
        if spread.iter().any(|spread| !spread.is_finite()) {
            let what = "the numbers are so large that the sums of their squares overflow: scale the columns";
            return Err(Error::Question(what.into()).into());
        }
        let line = line(n as u64, spread[0], spread[1], spread[2], x + n * x0, y + n * y0)?;
        Ok((Fit { line, left_out, notes }, summary))
    }
}

/// The key of rows without a number.
const LEFT_OUT: u8 = SUMS as u8;

impl<S: Sum> MapReduce for Columns<S> {
    type Key = u8;
    type Value = S;

    fn keys(&self) -> Option<usize> {
        Some(SUMS + 1)
    }

    fn combiner(&self) -> Option<impl Fn(S, S) -> S> {
        Some(sum::add)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, S>) -> Result<(), ProgramError> {
        let mut sums = [S::default(); SUMS - 1];
        let (mut pairs, mut left_out) = (0u64, 0);
        self.table.for_each_row(chunk, |fields| {
            if !self.strict && fields.iter().any(|field| field.trim_ascii().is_empty()) {
                left_out += 1;
                return Ok(());
            }
            let mut pair = [0.0; 2];
            for (column, ((value, field), origin)) in pair.iter_mut().zip(fields).zip(self.origin).enumerate() {
                *value = finite(field).map_err(|why| (column, why))? - origin;
                if !(*value * *value).is_finite() {
                    return Err((column, "it is so large that its square overflows".to_owned()));
                }
            }
            let [x, y] = pair;
            for (sum, term) in sums.iter_mut().zip([x, y, x * x, y * y, x * y]) {
                *sum += Number::Fraction(term).into();
            }
            pairs += 1;
            Ok(())
        })?;
        out.emit(N, Number::Whole(pairs.into()).into());
        (X..).zip(sums).for_each(|(key, sum)| out.emit(key, sum));
        if left_out > 0 {
            out.emit(LEFT_OUT, S::rows(left_out));
        }
        Ok(())
    }
}
