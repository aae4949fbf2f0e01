//! Knowledge of the paper's rival (its section 5.4, method 1). Demands are the bandwidths used, which contention
//! makes too small. To match them, a polynomial fitted to training groups reduces the target too. The user provides
//! each program's time and requests.

use std::collections::BTreeMap;

use gristmill_schedule::{Arrival, Forecast, Key, Knowledge, Limits, ProgramId, ProgramWork, Progress, Quantum};

/// The works that the user provided, and the last used bandwidths.
#[derive(Clone, Debug)]
pub struct Measured {
    given: BTreeMap<Key, ProgramWork>,
    correction: Polynomial,
    executions: BTreeMap<ProgramId, (ProgramWork, f64)>,
}

impl Measured {
    /// Makes the knowledge from the works that the user provided and a correction of targets.
    pub fn new(given: BTreeMap<Key, ProgramWork>, correction: Polynomial) -> Measured {
        Measured { given, correction, executions: BTreeMap::new() }
    }
}

impl Knowledge for Measured {
    fn begin(&mut self, arrival: &Arrival) {
        if let Some(work) = self.given.get(&arrival.key) {
            self.executions.insert(arrival.id, (*work, work.requests / work.alone_us));
        }
    }

    fn learn(&mut self, quantum: &Quantum, _: &Limits) {
        for ran in &quantum.ran {
            if let (Some((work, used)), Some(counts)) = (self.executions.get_mut(&ran.id), ran.counts) {
                *used = counts.requests * work.threads as f64 / ran.processor_us;
            }
        }
    }

    fn end(&mut self, id: ProgramId, _: bool) {
        self.executions.remove(&id);
    }

    fn forecast(&self, id: ProgramId) -> Option<Forecast> {
        let (work, used) = self.executions.get(&id)?;
        // The progress in time alone is not known here, so the whole work counts as left.
        Some(Forecast { demand: *used, whole: *work, left: *work })
    }

    fn progress(&self, _: ProgramId) -> Option<Progress> {
        None
    }

    fn target(&self, ideal_average: f64) -> f64 {
        self.correction.at(ideal_average)
    }
}

/// `c0 + c1 x + c2 x^2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polynomial(pub [f64; 3]);

impl Polynomial {
    /// The polynomial that changes nothing.
    pub const IDENTITY: Polynomial = Polynomial([0.0, 1.0, 0.0]);

    /// Returns the value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.0[0] + x * (self.0[1] + x * self.0[2])
    }

    /// Fits a polynomial to these points by least squares. Returns `None` if there are fewer than three distinct
    /// places.
    pub fn fitted(points: &[(f64, f64)]) -> Option<Polynomial> {
        // Places are scaled to about 1, so that their powers are of similar size.
        let scale = points.iter().map(|(x, _)| x.abs()).fold(0.0, f64::max);
        let mut rows = vec![vec![0.0; 4]; 3];
        for (x, y) in points {
            let powers = [1.0, x / scale, (x / scale) * (x / scale)];
            for (row, left) in rows.iter_mut().zip(powers) {
                for (cell, right) in row.iter_mut().zip(powers) {
                    *cell += left * right;
                }
                row[3] += left * y;
            }
        }
        let [c0, c1, c2] = solved(rows)?.try_into().ok()?;
        Some(Polynomial([c0, c1 / scale, c2 / (scale * scale)]))
    }
}

/// Solves linear equations, each a row of coefficients and the right side. Returns `None` if the solution is not
/// unique.
pub(super) fn solved(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for at in 0..count {
        let pivot = (at..count).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < 1e-9 {
            return None;
        }
        let row = rows[at].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(place, _)| *place != at) {
            let factor = other[at] / row[at];
            other.iter_mut().zip(&row).for_each(|(cell, of_row)| *cell -= factor * of_row);
        }
    }
    Some((0..count).map(|at| rows[at][count] / rows[at][at]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polynomial_through_three_points_is_found() {
        let expected = Polynomial([3.0, -2.0, 0.5]);
        let points = [1.0, 4.0, 140.0, 90.0].map(|x| (x, expected.at(x)));
        let found = Polynomial::fitted(&points).expect("there is one");
        assert!(points.iter().all(|(x, y)| (found.at(*x) - y).abs() < 1e-6 * y.abs()), "{found:?}");
    }

    #[test]
    fn two_places_have_no_single_polynomial() {
        assert_eq!(Polynomial::fitted(&[(1.0, 1.0), (2.0, 2.0), (2.0, 3.0)]), None);
    }
}
