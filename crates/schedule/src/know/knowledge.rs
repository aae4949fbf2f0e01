//! The interface between the scheduler and its sources of knowledge about programs.

use crate::know::store::Store;
use crate::know::work::ProgramWork;
use crate::machine::{Arrival, Limits, ProgramId, Quantum};

/// A source of knowledge: earlier executions ([`crate::Learned`]), or one that experiments compare with it.
pub trait Knowledge {
    /// Records that a program begins.
    fn begin(&mut self, arrival: &Arrival);

    /// Takes in what was kept of a program from earlier sessions. Nothing that is known already is replaced.
    fn recall(&mut self, _kept: Store) {}

    /// Records the order of the programs in the next quantum.
    fn decided(&mut self, _order: Order) {}

    /// Returns what is known of both orders of the programs that run now.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// Records a quantum. `end` is called afterwards for programs that ended in it.
    fn learn(&mut self, quantum: &Quantum, limits: &Limits);

    /// Records that a program has ended; `whole` says whether it ended by itself.
    fn end(&mut self, id: ProgramId, whole: bool);

    /// Returns a program's forecast, or `None` if too little is known; then the system's own order is kept.
    fn forecast(&self, id: ProgramId) -> Option<Forecast>;

    /// Returns a program's progress in its last quantum, or `None` if it is unknown.
    fn progress(&self, id: ProgramId) -> Option<Progress>;

    /// Returns the target bandwidth for a group with this ideal average.
    fn target(&self, ideal_average: f64) -> f64 {
        ideal_average
    }
}

/// The order of the programs in a quantum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The scheduler chose them, and not the system.
    pub is_chosen: bool,
    /// It was the turn of the scheduler's order, whether there was something to choose or not.
    pub is_tried: bool,
}

/// The executions so far of the programs that run now, each program and input once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// A gain was measured of choosing them.
    pub has_gained: bool,
    /// The number of programs with different inputs.
    pub programs: u64,
    /// The number of their executions.
    pub all: u64,
    /// The number of those in which it was the turn of the scheduler's order.
    pub tried: u64,
}

/// The expected behaviour of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// The bandwidth in the next quantum if the program is alone, in requests per microsecond.
    pub demand: f64,
    /// The work of the whole execution.
    pub whole: ProgramWork,
    /// The remaining work.
    pub left: ProgramWork,
}

/// The progress of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The time that it ran.
    pub ran_us: f64,
    /// The time that the same work takes alone.
    pub alone_us: f64,
}

impl Progress {
    /// Returns the share of its speed that the program lost.
    pub fn loss(&self) -> f64 {
        1.0 - self.alone_us / self.ran_us
    }
}
