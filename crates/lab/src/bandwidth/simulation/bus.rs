//! The memory bus: how much programs that run at the same time slow each other down.
//!
//! Of a program's time alone, a part `s = demand / core_peak` is spent waiting for memory. Others lengthen each wait by
//! `λw`, where `w` is their share of all traffic (for a program alone, `w` is 0), so
//!
//! ```text
//!  speed = 1 / (1 + s w λ)        λ = gain * U^power / (1 - U)        U = sum of demand * speed / peak
//! ```
//!
//! `λ` grows faster than the utilisation `U` that causes it, and without bound as `U` approaches 1, so the memory never
//! exceeds its peak. A larger `λ` slows programs down and lowers `U`, so there is exactly one solution. The three
//! numbers are calibrated to the paper's figure 3.

/// The memory of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bus {
    /// The most it moves, in requests per microsecond.
    pub peak: f64,
    /// The most that one processor demands when it does nothing else.
    pub core_peak: f64,
    /// The strength of contention.
    pub gain: f64,
    /// The power by which contention grows faster than its cause.
    pub power: f64,
}

impl Bus {
    /// The bus of the paper's machine.
    pub fn paper() -> Bus {
        Bus { peak: 120.0, core_peak: 62.0, gain: 0.05, power: 6.0 }
    }

    /// Returns the share of its speed alone that each of these demands keeps when all run together.
    pub fn speeds(&self, demands: &[f64]) -> Vec<f64> {
        let all: f64 = demands.iter().sum();
        if all <= 0.0 {
            return vec![1.0; demands.len()];
        }
        // The effect of λ on each program: s w.
        let weights: Vec<f64> =
            demands.iter().map(|demand| (demand / self.core_peak).min(1.0) * (all - demand).max(0.0) / all).collect();
        let used = |delay: f64| -> f64 {
            let each = demands.iter().zip(&weights).map(|(demand, weight)| demand / (1.0 + weight * delay));
            each.sum::<f64>() / self.peak
        };
        let caused = |used: f64| self.gain * used.powf(self.power) / (1.0 - used);
        // 1. Find a delay that is too large: one that frees more bandwidth than causes it.
        let is_enough = |delay: f64| {
            let used = used(delay);
            used < 1.0 && caused(used) <= delay
        };
        let (mut low, mut high) = (0.0, 1.0);
        while !is_enough(high) && high < 1e6 {
            (low, high) = (high, high * 2.0);
        }
        // 2. Bisect.
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if is_enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        weights.iter().map(|weight| 1.0 / (1.0 + weight * high)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(demands: &[f64]) -> f64 {
        demands.iter().zip(Bus::paper().speeds(demands)).map(|(demand, speed)| demand * speed).sum()
    }

    #[test]
    fn a_program_alone_keeps_its_speed() {
        assert_eq!(Bus::paper().speeds(&[70.0]), [1.0]);
        assert_eq!(Bus::paper().speeds(&[70.0, 0.0])[0], 1.0);
        assert_eq!(Bus::paper().speeds(&[0.0, 0.0]), [1.0, 1.0]);
    }

    #[test]
    fn contention_grows_faster_than_its_cause() {
        let loss = |demand: f64| 1.0 - Bus::paper().speeds(&[demand; 4])[0];
        let losses = [10.0, 20.0, 30.0, 40.0].map(loss);
        assert!(losses.windows(2).all(|pair| pair[1] > pair[0]));
        assert!(losses[1] > 2.5 * losses[0] && losses[3] > 2.5 * losses[1], "{losses:?}");
    }

    #[test]
    fn the_memory_never_gives_more_than_its_peak() {
        for count in [2, 4, 8, 64, 1024] {
            assert!(used(&vec![60.0; count]) <= 120.0, "{count}");
        }
        assert!(used(&[60.0; 8]) > 108.0);
    }

    #[test]
    fn even_demand_gives_more_than_the_same_demand_in_turns() {
        // Four programs in two quanta: each heavy one with a light one, or both heavy ones and then both light ones.
        let (even, uneven) = (2.0 * used(&[60.0, 5.0, 55.0, 5.0]), used(&[60.0, 60.0, 55.0, 55.0]) + used(&[5.0; 4]));
        assert!(even > 1.05 * uneven, "{even} {uneven}");
    }
}
