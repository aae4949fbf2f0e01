//! What a scheduler has to know of its programs, whatever the source.

use crate::ideal::Work;
use crate::machine::{Arrival, Limits, ProgramId, Quantum};

/// A source of knowledge: earlier executions ([`crate::Learned`]), or what experiments compare with them.
pub trait Knowledge {
    /// A program begins.
    fn begin(&mut self, arrival: &Arrival);

    /// A quantum is over. Programs that ended in it are told of afterwards.
    fn learn(&mut self, quantum: &Quantum, limits: &Limits);

    /// A program has ended; `whole` says whether it came to its end by itself.
    fn end(&mut self, id: ProgramId, whole: bool);

    /// A program's forecast. `None` if too little is known of it; then the system's own order is kept.
    fn forecast(&self, id: ProgramId) -> Option<Forecast>;

    /// How far a program came in its last quantum. `None` if nobody can say.
    fn progress(&self, id: ProgramId) -> Option<Progress>;

    /// The bandwidth to aim at for a group with this ideal average.
    fn target(&self, ideal_average: f64) -> f64 {
        ideal_average
    }
}

/// What is expected of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Its bandwidth in the next quantum if it is alone, in requests per microsecond.
    pub demand: f64,
    /// The whole execution.
    pub whole: Work,
    /// What is left of it.
    pub left: Work,
}

/// How far a program came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// How long it ran.
    pub ran_us: f64,
    /// How long it would have taken alone.
    pub alone_us: f64,
}

impl Progress {
    /// The share of its speed that it lost.
    pub fn loss(&self) -> f64 {
        1.0 - self.alone_us / self.ran_us
    }
}
