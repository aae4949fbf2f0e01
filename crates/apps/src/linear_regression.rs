//! Linear regression: fits a straight line through pairs of numbers by least squares.
//!
//! Pairs are read from bytes (x, then y, as in Phoenix) or from two columns of CSV files. Every chunk is summed in
//! registers; six sums per chunk are emitted.
//!
//! Squares of numbers of columns would overflow from 2^512 on, and vanish below 2^-537. So numbers are summed in three
//! scales, each a power of two, which changes no digit; products of two numbers have five:
//!
//! ```text
//!  scale   numbers           summed as       products   summed as
//!    1     from 2^448 on     x * 2^-640      -2..=2     xy * 2^(-640 scale)
//!    0     others, and 0     x
//!   -1     below 2^-448      x * 2^640
//! ```

use std::marker::PhantomData;

use gristmill::{Chunk, Emit, Input, Job, MapReduce, Outcome, ProgramError, Records, Summary};
use gristmill_os::vectors::with_widest;

use crate::columns::{Column, Table};
use crate::error::{Error, Result, whole_records};
use crate::heading::Dialect;
use crate::number::{Number, finite, overflow, short};
use crate::sum::{self, Content, Sum};

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
            x as f64 / n as f64,
        );
        Ok((line?, summary))
    }
}

/// Returns the line for `n` pairs with these sums of x and y, and n times the sums of squares and products about the
/// means. `first_x` is the x of any pair.
fn line(n: u64, xx: f64, yy: f64, xy: f64, x: f64, y: f64, first_x: f64) -> Result<Line> {
    if n < 2 {
        return Err(Error::Question(format!("a line needs two pairs or more, and there are {n}")));
    }
    if xx <= 0.0 {
        return Err(Error::Question(format!("x is {} in all {n} pairs: no line has a slope there", short(first_x))));
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

/// Sums over two columns of CSV files. Numbers are summed relative to the first good pair, so that columns far from
/// zero lose no digits. If `S` is [`BinnedSum`](crate::BinnedSum), neither the sums nor the line depend on the order of
/// the rows.
///
/// As in SQL, a pair with an empty number is left out.
pub struct Columns<S> {
    /// The places of x and y.
    table: Table<2>,
    /// The first good pair.
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
    /// two pairs, the same x in all pairs, a slope or intercept beyond the largest `f64`; an error of `run`.
    pub fn fit<E: From<Error>>(
        mut input: Input,
        dialect: &Dialect,
        columns: [Column; 2],
        strict: bool,
        run: impl FnOnce(Job<'_, Columns<S>>) -> std::result::Result<Outcome<Columns<S>>, E>,
    ) -> std::result::Result<(Fit, Summary), E> {
        let Some(mut table) = Table::look(&mut input, dialect, &columns, [true; 2])? else {
            return Err(Error::Question("a line needs two pairs or more, and the input is empty".into()).into());
        };
        let notes = std::mem::take(&mut table.notes);
        let origin = table.first.unwrap_or_default();
        let columns = Columns { origin, table, strict, sums: PhantomData };
        let (pairs, summary) = run(Job::new(&columns, input).records(columns.table.records()))?;
        let (mut n, mut sums, mut left_out) = (0, ScaledSums::default(), 0);
        pairs.iter().for_each(|(key, sum)| match key {
            N => n = sum.exact().unwrap_or(0) as u64,
            LEFT_OUT => left_out = sum.rows_left_out().map_or(0, |counted| counted.rows),
            _ => sums.0[usize::from(key - X) / SCALES][usize::from(key - X) % SCALES] = sum.nearest(),
        });
        let line = sums.line(n, columns.origin)?;
        Ok((Fit { line, left_out, notes }, summary))
    }
}

/// The number of scales of a sum of products.
const SCALES: usize = 5;
/// The place of the sum of numbers that are not scaled.
const PLAIN: usize = SCALES / 2;
/// The key of rows without a number. The keys before it are [`N`] and, from [`X`] on, those of five sums in each scale.
const LEFT_OUT: u8 = 1 + (5 * SCALES) as u8;

/// A number as it is summed: times 2^(-640 `scale`).
#[derive(Clone, Copy)]
struct Scaled {
    number: f64,
    scale: i32,
}

impl Scaled {
    /// Returns the difference of two numbers.
    #[inline(always)]
    fn difference(number: f64, origin: f64) -> Scaled {
        let difference = number - origin;
        match difference.abs() {
            0.0 => Scaled { number: difference, scale: 0 },
            size if (power(-448)..power(448)).contains(&size) => Scaled { number: difference, scale: 0 },
            size if size < 1.0 => Scaled { number: difference * power(640), scale: -1 },
            // The difference of two numbers may be infinite, that of parts of them is not.
            _ => Scaled { number: number * power(-640) - origin * power(-640), scale: 1 },
        }
    }

    /// Returns the product of two numbers.
    #[inline(always)]
    fn times(self, other: Scaled) -> Scaled {
        Scaled { number: self.number * other.number, scale: self.scale + other.scale }
    }

    /// Returns the number times 2^(-640 `scale`).
    fn to_scale(self, scale: i32) -> f64 {
        let factor = power(if self.scale < scale { -640 } else { 640 });
        (0..self.scale.abs_diff(scale)).fold(self.number, |number, _| number * factor)
    }
}

/// Returns two to this power, -1022 to 1023.
#[inline(always)]
const fn power(of_two: i32) -> f64 {
    f64::from_bits(((of_two + 1023) as u64) << 52)
}

/// The sums of x, y, xx, yy and xy, each in all scales.
#[derive(Default)]
struct ScaledSums([[f64; SCALES]; 5]);

impl ScaledSums {
    /// Returns the line for `n` pairs, whose numbers were summed relative to `origin`.
    fn line(&self, n: u64, origin: [f64; 2]) -> Result<Line> {
        let [x, y, xx, yy, xy] = self.0;
        let scaled = |at: usize, number: f64| Scaled { number, scale: at as i32 - PLAIN as i32 };
        // 1. The scale of a column is that of its largest number: sums of squares are positive in scales that occur.
        let scale_of = |squares: [f64; SCALES], origin: f64| {
            let largest = (0..SCALES).rev().find(|at| squares[*at] > 0.0);
            largest.map_or(Scaled::difference(origin, 0.0).scale, |at| scaled(at, 0.0).scale / 2)
        };
        let [a, b] = [scale_of(xx, origin[0]), scale_of(yy, origin[1])];
        // 2. The line of scaled columns. What vanishes beside larger numbers does not count.
        let total = |sums: [f64; SCALES], scale: i32| -> f64 {
            sums.into_iter().enumerate().map(|(at, sum)| scaled(at, sum).to_scale(scale)).sum()
        };
        let [x, y, xx, yy, xy] = [total(x, a), total(y, b), total(xx, 2 * a), total(yy, 2 * b), total(xy, a + b)];
        let [x0, y0] = [scaled(PLAIN, origin[0]).to_scale(a), scaled(PLAIN, origin[1]).to_scale(b)];
        let count = n as f64;
        let spread = [count * xx - x * x, count * yy - y * y, count * xy - x * y];
        let line = line(n, spread[0], spread[1], spread[2], x + count * x0, y + count * y0, origin[0])?;
        // 3. The line of the columns themselves.
        let slope = Scaled { number: line.slope, scale: b - a }.to_scale(0);
        let intercept = Scaled { number: line.intercept, scale: b }.to_scale(0);
        for (what, number) in [("slope", slope), ("intercept", intercept)] {
            if !number.is_finite() {
                return Err(overflow(format_args!("the {what} of the line")));
            }
        }
        Ok(Line { slope, intercept, ..line })
    }
}

impl<S: Sum> MapReduce for Columns<S> {
    type Key = u8;
    type Value = S;

    fn keys(&self) -> Option<usize> {
        Some(usize::from(LEFT_OUT) + 1)
    }

    fn combiner(&self) -> Option<impl Fn(S, S) -> S> {
        Some(sum::add)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, S>) -> Result<(), ProgramError> {
        let mut sums = [[S::default(); SCALES]; 5];
        let (mut pairs, mut left_out) = (0u64, 0);
        self.table.for_each_row(chunk, |fields| {
            if !self.strict && fields.iter().any(|field| field.trim_ascii().is_empty()) {
                left_out += 1;
                return Ok(());
            }
            let mut pair = [Scaled { number: 0.0, scale: 0 }; 2];
            for (column, ((value, field), origin)) in pair.iter_mut().zip(fields).zip(self.origin).enumerate() {
                *value = Scaled::difference(finite(field).map_err(|why| (column, why))?, origin);
            }
            let [x, y] = pair;
            for (sums, term) in sums.iter_mut().zip([x, y, x.times(x), y.times(y), x.times(y)]) {
                sums[(term.scale + PLAIN as i32) as usize] += Number::Fraction(term.number).into();
            }
            pairs += 1;
            Ok(())
        })?;
        out.emit(N, Number::Whole(pairs.into()).into());
        let sums = (X..).zip(sums.into_iter().flatten());
        sums.filter(|(_, sum)| sum.content() > Content::Nothing).for_each(|(key, sum)| out.emit(key, sum));
        if left_out > 0 {
            out.emit(LEFT_OUT, S::rows(left_out));
        }
        Ok(())
    }
}
