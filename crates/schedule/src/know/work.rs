//! The work of a program, in the paper's terms (section 2.1).

/// The work of a program from start to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramWork {
    /// The time it takes when it has the machine for itself.
    pub alone_us: f64,
    /// The number of cache lines it moves.
    pub requests: f64,
    /// The number of processors it keeps busy, at least 1.
    pub threads: usize,
}
