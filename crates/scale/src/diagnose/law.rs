//! Laws of scaling: the time as a function of the number of workers.
//!
//! A law is a shape, T(k) / T(1), with one or two parameters between 0 and 1.

use std::fmt;

/// A law of scaling, or the curve that stands against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// Amdahl 1967, with a serial part `s`: `T(k) = T1 (s + (1 - s) / k)`.
    Amdahl,
    /// Gunther 1993, with contention `a` and coherence `b`: `T(k) = T1 (1 + a (k - 1) + b k (k - 1)) / k`.
    Universal,
    /// A shared resource is saturated at a time `F = f T1`, and each further worker costs `c T1`: `T(k) = max(T1 / k,
    /// F) + c T1 (k - 1)`.
    Floor,
    /// From `m = 1 / f` workers on, each further one does a share `g` of the work of one: `T(k) = T1 / (min(k, m) + g
    /// max(k - m, 0))`. Second threads of cores and slow NUMA nodes look like this, but so do many other curves. A law
    /// must describe the times better than this curve, which is never named as the law itself.
    Bend,
}

/// The parameters of a law; unused ones are 0.
pub(crate) type Shape = [f64; 2];

impl Law {
    /// Every law, the one with the fewest parameters first, and the bend.
    pub const ALL: [Law; 4] = [Law::Amdahl, Law::Universal, Law::Floor, Law::Bend];

    /// Returns the meaning of each parameter in a few words.
    pub fn meanings(self) -> &'static [&'static str] {
        match self {
            Law::Amdahl => &["serial part"],
            Law::Universal => &["contention", "coherence"],
            Law::Floor => &["floor as a share of the time of one worker", "cost of a further worker"],
            Law::Bend => &["one worker as a share of those at the bend", "work of a further worker"],
        }
    }

    /// Returns the time with `workers`, relative to the time with one.
    pub(crate) fn shape(self, workers: f64, [first, second]: Shape) -> f64 {
        let others = workers - 1.0;
        match self {
            Law::Amdahl => first + (1.0 - first) / workers,
            Law::Universal => (1.0 + first * others + second * workers * others) / workers,
            Law::Floor => (1.0 / workers).max(first) + second * others,
            Law::Bend => {
                let bend = (1.0 / first).max(1.0);
                1.0 / (workers.min(bend) + second * (workers - bend).max(0.0))
            }
        }
    }

    /// Returns the number of workers with the shortest time; infinite if each further worker helps.
    pub(crate) fn best(self, [first, second]: Shape) -> f64 {
        let best = match self {
            Law::Amdahl if first < 1.0 => f64::INFINITY,
            Law::Amdahl => 1.0,
            Law::Universal => ((1.0 - first) / second).sqrt(),
            // The point where the cost of another worker exceeds its gain, or where the resource is saturated.
            Law::Floor => (1.0 / second).sqrt().min(1.0 / first),
            Law::Bend if second > 0.0 => f64::INFINITY,
            Law::Bend => 1.0 / first,
        };
        // Without contention and coherence the quotient is 0/0.
        if best.is_nan() { 1.0 } else { best.max(1.0) }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Amdahl => "Amdahl's law",
            Law::Universal => "the universal scalability law",
            Law::Floor => "a floor",
            Law::Bend => "a bend",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_loss_k_workers_take_a_kth_of_the_time() {
        for law in Law::ALL {
            assert_eq!(law.shape(1.0, [0.3, 0.01]), 1.0, "{law}");
            assert_eq!(law.shape(8.0, [0.0, 0.0]), 0.125, "{law}");
        }
    }

    #[test]
    fn the_best_number_of_workers_is_that_of_the_shortest_time() {
        let shapes = [[0.0, 0.0], [0.1, 0.0], [0.0, 0.01], [0.1, 0.0025], [0.02, 0.0025], [1.0, 1.0], [1.0, 0.0]];
        for law in [Law::Universal, Law::Floor, Law::Bend] {
            for shape in shapes {
                let best = law.best(shape).min(1000.0);
                for other in [best * 0.7, best * 1.4] {
                    let other = other.clamp(1.0, 1000.0);
                    assert!(
                        law.shape(best, shape) <= law.shape(other, shape) + 1e-12,
                        "{law} {shape:?}: {best} {other}"
                    );
                }
            }
        }
        assert_eq!(Law::Bend.best([0.125, 0.0]), 8.0);
        assert_eq!(Law::Amdahl.best([0.1, 0.0]), f64::INFINITY);
        assert_eq!(Law::Universal.best([1.0, 0.0]), 1.0);
    }
}
