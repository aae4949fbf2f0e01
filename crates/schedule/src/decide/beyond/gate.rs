//! The gate (beyond the paper): keeps the system's own order while there is no contention.
//!
//! ```text
//!            loss of the last quanta >= loss_min
//!  Watching -------------------------------------> Open
//!     ^  the system's order                          |  our order
//!     +----------------------------------------------+
//!                after open_quanta, or when it follows a loss that has gone
//! ```

use std::collections::VecDeque;

/// The rule by which the gate opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateRule {
    /// The number of quanta of the system's order that are watched.
    pub watch_quanta: usize,
    /// The smallest loss of speed at which changing the order pays.
    pub loss_min: f64,
    /// The number of quanta of our order after which the system's order is watched again.
    pub open_quanta: u64,
    /// The loss is a forecast that does not depend on the order. So it is watched while the gate is open, too, which
    /// closes it below half of `loss_min`.
    pub follows: bool,
}

impl Default for GateRule {
    /// Half a second is watched, then the gate is open for a minute. The least loss is slightly above the cost of
    /// monitoring.
    fn default() -> GateRule {
        GateRule { watch_quanta: 5, loss_min: 0.05, open_quanta: 600, follows: false }
    }
}

/// A gate, open or closed.
#[derive(Clone, Debug)]
pub struct Gate {
    rule: GateRule,
    /// Lost time and run time of the watched quanta.
    watched: VecDeque<(f64, f64)>,
    open_quanta_left: u64,
}

impl Gate {
    /// Makes a closed gate that has seen nothing.
    pub fn new(rule: GateRule) -> Gate {
        Gate { rule, watched: VecDeque::new(), open_quanta_left: 0 }
    }

    /// Returns true if the order may be changed.
    pub fn is_open(&self) -> bool {
        self.open_quanta_left > 0
    }

    /// Records a quantum: the time that programs lost, and the time that they ran.
    pub fn observe(&mut self, lost_us: f64, ran_us: f64) {
        let was_open = self.is_open();
        self.open_quanta_left = self.open_quanta_left.saturating_sub(1);
        if was_open && !self.rule.follows {
            return;
        }
        self.watched.push_back((lost_us, ran_us));
        if self.watched.len() < self.rule.watch_quanta {
            return;
        }
        let (lost, ran) = self.watched.iter().fold((0.0, 0.0), |sum, quantum| (sum.0 + quantum.0, sum.1 + quantum.1));
        self.watched.pop_front();
        let loss = if ran > 0.0 { lost / ran } else { 0.0 };
        if loss >= self.rule.loss_min {
            if !self.rule.follows {
                self.watched.clear();
            }
            self.open_quanta_left = self.rule.open_quanta;
        } else if loss < self.rule.loss_min / 2.0 {
            self.open_quanta_left = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: GateRule = GateRule { watch_quanta: 3, loss_min: 0.05, open_quanta: 4, follows: false };

    #[test]
    fn the_gate_stays_closed_while_no_program_loses_speed() {
        let mut gate = Gate::new(RULE);
        for _ in 0..100 {
            gate.observe(1.0, 100.0);
            assert!(!gate.is_open());
        }
    }

    #[test]
    fn the_gate_opens_where_programs_slow_each_other_down() {
        let mut gate = Gate::new(RULE);
        for (lost, open) in [(0.0, false), (0.0, false), (10.0, false), (10.0, true)] {
            gate.observe(lost, 100.0);
            assert_eq!(gate.is_open(), open);
        }
    }

    #[test]
    fn the_gate_is_checked_again_after_a_while() {
        let mut gate = Gate::new(RULE);
        (0..3).for_each(|_| gate.observe(10.0, 100.0));
        let open = (0..20).take_while(|_| {
            let open = gate.is_open();
            gate.observe(0.0, 100.0);
            open
        });
        assert_eq!(open.count(), 4);
    }

    #[test]
    fn a_gate_that_follows_a_forecast_closes_when_the_loss_has_gone() {
        let mut gate = Gate::new(GateRule { open_quanta: 100, follows: true, ..RULE });
        (0..50).for_each(|_| gate.observe(10.0, 100.0));
        assert!(gate.is_open());
        let open = (0..20).take_while(|_| {
            gate.observe(0.0, 100.0);
            gate.is_open()
        });
        assert_eq!(open.count(), 2);
    }
}
