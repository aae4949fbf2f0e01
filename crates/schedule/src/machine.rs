//! The interface between the scheduler and the machine: [`Machine`] and its data.
//!
//! Time is in microseconds, bandwidth in requests per microsecond. A request is one cache line of 64 bytes from or to
//! memory, so 120 requests per microsecond are 7.68 GB/s.

/// A machine on which programs run for one quantum at a time.
///
/// The scheduler decides, the machine runs and reports, until no program is left ([`crate::drive`]).
pub trait Machine {
    /// The error of a quantum that could not be run.
    type Error;

    /// Returns the resources that are shared now. They may change from quantum to quantum.
    fn limits(&self) -> Limits;

    /// Runs one quantum of `quantum_us` as decided and reports what happened. Returns `None` when every program has
    /// ended and none will arrive.
    ///
    /// If no program can run, the machine waits for the next arrival and reports it.
    fn run(&mut self, decision: &Decision, quantum_us: f64) -> Result<Option<Quantum>, Self::Error>;
}

/// The resources that programs share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The number of processors that programs may use.
    pub processors: usize,
    /// The processors' time that they may use together (a quota of the control group); infinite without a quota.
    pub quota: f64,
    /// The memory for all programs that have begun.
    pub memory_bytes: u64,
    /// The largest bandwidth of the memory, in requests per microsecond.
    pub peak: f64,
}

/// The number of one execution of a program. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// The key under which a program's profile is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The program: the build id of its file, or a digest of it. Phases are kept by build alone.
    pub build: String,
    /// Its input: a digest of the arguments and the input files. Time and requests are kept by build and input.
    pub input: String,
}

/// A program that wants to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The number by which it is known from now on.
    pub id: ProgramId,
    /// The key of its profile.
    pub key: Key,
    /// The number of threads that compute at the same time, at least 1.
    pub threads: usize,
    /// The memory it needs, or 0 if unknown.
    pub memory_bytes: u64,
}

/// The scheduler's decision for the next quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Programs that begin.
    pub begin: Vec<ProgramId>,
    /// Programs that run.
    pub run: Choice,
    /// Whether to sample addresses, which costs time. Programs without samples are still in the phase of their last
    /// ones.
    pub sample: bool,
}

/// The programs that run in a quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All that have begun; the operating system shares the processors out.
    System,
    /// Only these; all others are stopped.
    Only(Vec<ProgramId>),
}

/// The report of a quantum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantum {
    /// Its length.
    pub length_us: f64,
    /// The programs that used a processor.
    pub ran: Vec<Ran>,
    /// The programs that wait for input or output at its end.
    pub waiting: Vec<ProgramId>,
    /// Requests of programs outside the scheduler.
    pub foreign_requests: f64,
    /// The readings during it, on a machine that cannot count requests.
    pub readings: Vec<Reading>,
    /// The programs that arrived. They have not begun.
    pub arrived: Vec<Arrival>,
    /// The programs that ended.
    pub ended: Vec<Ended>,
}

/// The report of one program in a quantum.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The program.
    pub id: ProgramId,
    /// Processor time of all its threads.
    pub processor_us: f64,
    /// The counts; `None` on a machine that cannot count. Without readings either, the system's own order is always
    /// kept.
    pub counts: Option<Counts>,
    /// Sampled instruction addresses, relative to the load address of the program's file.
    pub addresses: Vec<u64>,
}

/// A little work on memory that is in no cache, which takes longer while programs use the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its time.
    pub took_us: f64,
    /// The number of processors that each program used meanwhile.
    pub used: Vec<(ProgramId, f64)>,
}

/// A machine's counts of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// The number of executed instructions.
    pub instructions: f64,
    /// The number of cache lines moved from or to memory.
    pub requests: f64,
}

/// A program that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The program.
    pub id: ProgramId,
    /// True if it ended by itself, so that its time and requests are those of a whole run.
    pub whole: bool,
}
