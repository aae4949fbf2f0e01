//! Seconds at each number of workers.

use std::collections::BTreeMap;

/// An error in times or in a table of them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A number of workers that makes no sense.
    #[error("{0} is no number of workers: it must be 1 to {max}", max = Times::WORKERS_MAX)]
    Workers(u64),
    /// A time that makes no sense.
    #[error("{0} is no time in seconds: it must be above 0 and below {max:e}", max = Times::SECONDS_MAX)]
    Seconds(f64),
    /// A line of a table that cannot be parsed.
    #[error("line {line}: {what}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The problem with it.
        what: String,
    },
    /// There is no time above zero.
    #[error("there is no time to analyse")]
    Empty,
}

/// Times of one program, in seconds, by the number of workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    by_workers: BTreeMap<u64, Vec<f64>>,
}

/// All times at one number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of workers.
    pub workers: u64,
    /// All times in ascending order; at least one.
    pub seconds: Vec<f64>,
}

impl Times {
    /// A bound above any real number of workers.
    pub const WORKERS_MAX: u64 = 1 << 20;
    /// Three hundred thousand years, a bound above any real time.
    pub const SECONDS_MAX: f64 = 1e13;

    /// Adds one time.
    ///
    /// # Errors
    ///
    /// If workers are 0 or more than [`Times::WORKERS_MAX`], or seconds are not above 0. A time of zero means that
    /// the clock was too coarse.
    pub fn add(&mut self, workers: u64, seconds: f64) -> Result<(), Error> {
        if !(1..=Times::WORKERS_MAX).contains(&workers) {
            return Err(Error::Workers(workers));
        }
        if !(seconds > 0.0 && seconds < Times::SECONDS_MAX) {
            return Err(Error::Seconds(seconds));
        }
        let there = self.by_workers.entry(workers).or_default();
        let place = there.partition_point(|other| *other <= seconds);
        there.insert(place, seconds);
        Ok(())
    }

    /// Reads a table. Each line has a number of workers and a time in seconds, separated by a comma, a semicolon, a
    /// tab or spaces. A first line without numbers is a heading. Empty lines and lines that begin with `#` are
    /// skipped.
    ///
    /// Returns the times, and the numbers of lines whose time is 0, which are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Line`] for the first malformed line; [`Error::Empty`] if no time is above 0.
    ///
    /// ```
    /// # use gristmill_scale::diagnose::Times;
    /// let (times, zeros) = Times::from_table("workers,seconds\n1,3.01\n2,1.58\n")?;
    /// assert_eq!(times.points().count(), 2);
    /// assert!(zeros.is_empty());
    /// # Ok::<(), gristmill_scale::diagnose::Error>(())
    /// ```
    pub fn from_table(text: &str) -> Result<(Times, Vec<usize>), Error> {
        let (mut times, mut zeros, mut is_first) = (Times::default(), Vec::new(), true);
        for (at, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
            let wrong = |what: String| Error::Line { line: at + 1, what };
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let may_be_heading = std::mem::take(&mut is_first);
            let fields: Vec<&str> = line
                .split(|letter: char| matches!(letter, ',' | ';') || letter.is_whitespace())
                .filter(|field| !field.is_empty())
                .map(|field| field.trim_matches('"'))
                .collect();
            if may_be_heading && fields.iter().all(|field| field.parse::<f64>().is_err()) {
                continue;
            }
            let shape = || wrong("expected a number of workers and its seconds, as in 4,11.0".to_owned());
            let [workers, seconds] = fields[..] else { return Err(shape()) };
            let (workers, seconds) =
                (workers.parse::<u64>().map_err(|_| shape())?, seconds.parse::<f64>().map_err(|_| shape())?);
            match times.add(workers, seconds) {
                Err(Error::Seconds(0.0)) => zeros.push(at + 1),
                added => added.map_err(|error| wrong(error.to_string()))?,
            }
        }
        if times.by_workers.is_empty() { Err(Error::Empty) } else { Ok((times, zeros)) }
    }

    /// Returns the points, in ascending order of workers.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.by_workers.iter().map(|(workers, seconds)| Point { workers: *workers, seconds: seconds.clone() })
    }
}

impl Point {
    /// Returns the median; of an even number, the geometric mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let (below, above) = (self.seconds[(self.seconds.len() - 1) / 2], self.seconds[self.seconds.len() / 2]);
        (below * above).sqrt()
    }

    /// Returns the shortest and the longest time.
    pub fn range(&self) -> (f64, f64) {
        (self.seconds[0], self.seconds[self.seconds.len() - 1])
    }

    /// Returns the ratio of the longest to the shortest time, less one.
    pub fn spread(&self) -> f64 {
        let (least, most) = self.range();
        most / least - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_people_write_tables() {
        let expected = [(1, vec![3.01, 3.1]), (2, vec![1.58])];
        for text in [
            "1,3.01\n2,1.58\n1,3.1",
            "k,seconds\n1,3.01\n1,3.1\n2,1.58\n",
            "\u{feff}\"workers\";\"time\"\r\n\r\n1;3.1\r\n1;3.01\r\n# later\r\n2;1.58\r\n",
            "  1 \t 3.01\n1 3.1\n2\t1.58",
        ] {
            let (times, zeros) = Times::from_table(text).expect(text);
            let points: Vec<(u64, Vec<f64>)> = times.points().map(|point| (point.workers, point.seconds)).collect();
            assert_eq!((points, zeros), (expected.to_vec(), vec![]), "{text}");
        }
    }

    /// A program faster than the clock was measured as 0.000 s, though the other lines of the table were good.
    #[test]
    fn times_of_zero_are_set_aside_and_named() {
        let (times, zeros) = Times::from_table("1,0.01\n2,0\n4,0.000\n").expect("one is good");
        assert_eq!((times.points().count(), zeros), (1, vec![2, 3]));
        assert_eq!(Times::from_table("1,0\n"), Err(Error::Empty));
    }

    #[test]
    fn a_malformed_line_is_named() {
        for (text, said) in [
            ("1,2\n2", "line 2: expected"),
            ("1,2\nfour,3", "line 2: expected"),
            ("1,2,3", "line 1: expected"),
            ("1.5,2", "line 1: expected"),
            ("0,2", "line 1: 0 is no number of workers"),
            ("99999999,2", "line 1: 99999999 is no number of workers"),
            ("1,-2", "line 1: -2 is no time"),
            ("1,nan", "line 1: NaN is no time"),
            ("1,inf", "line 1: inf is no time"),
            ("", "there is no time"),
            ("# nothing", "there is no time"),
        ] {
            let error = Times::from_table(text).expect_err(text).to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_point_has_a_middle_and_a_spread() {
        let point = |seconds: &[f64]| Point { workers: 1, seconds: seconds.to_vec() };
        assert_eq!(point(&[2.0]).median(), 2.0);
        assert_eq!(point(&[1.0, 2.0, 9.0]).median(), 2.0);
        assert_eq!(point(&[1.0, 4.0]).median(), 2.0);
        assert_eq!(point(&[1.0, 2.0]).spread(), 1.0);
    }
}
