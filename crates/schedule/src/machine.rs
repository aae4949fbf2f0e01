//! The border between the scheduler and the machine: [`Machine`] and what passes through it.
//!
//! Time is in microseconds, bandwidth in requests per microsecond. A request is one cache line of 64 bytes that comes
//! from memory or goes there, so 120 requests per microsecond are 7.68 GB/s.

/// A machine on which programs run for one quantum at a time.
///
/// The scheduler decides, the machine runs and reports, and so on until no program is left ([`crate::drive`]).
pub trait Machine {
    /// Why a quantum could not be run.
    type Error;

    /// What there is to share out now; it may change from quantum to quantum.
    fn limits(&self) -> Limits;

    /// Carries a decision out for `quantum_us` and reports what happened. `None`: every program has ended, and none
    /// will arrive.
    ///
    /// A machine on which no program can run waits for the next arrival and reports that.
    fn run(&mut self, decision: &Decision, quantum_us: f64) -> Result<Option<Quantum>, Self::Error>;
}

/// What the programs share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Processors that the programs may use.
    pub processors: usize,
    /// How many processors' time they may use together (a quota of the control group); infinite if there is none.
    pub quota: f64,
    /// Memory for all programs that have begun.
    pub memory_bytes: u64,
    /// The largest bandwidth of the memory, in requests per microsecond.
    pub peak: f64,
}

/// One execution of a program; a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// The name under which a program's profile is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The program: the build id of its file, or a digest of it. Phases are kept by this alone.
    pub build: String,
    /// Its input: a digest of the arguments and of the input files. Time and requests are kept by both.
    pub input: String,
}

/// A program that wants to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Its number from now on.
    pub id: ProgramId,
    /// The name of its profile.
    pub key: Key,
    /// Threads that compute at the same time, at least 1.
    pub threads: usize,
    /// Memory that it needs, or 0 if nobody has said.
    pub memory_bytes: u64,
}

/// What the machine is to do in the next quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Programs to start.
    pub begin: Vec<ProgramId>,
    /// Who runs.
    pub run: Run,
}

/// The programs that run in a quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// All that have begun, as the operating system shares the processors out.
    System,
    /// These; all others stand still.
    Only(Vec<ProgramId>),
}

/// What happened in a quantum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantum {
    /// How long it was.
    pub length_us: f64,
    /// The programs that used a processor.
    pub ran: Vec<Ran>,
    /// The programs that wait for input or output at its end.
    pub waiting: Vec<ProgramId>,
    /// Requests of programs that are none of ours.
    pub foreign_requests: f64,
    /// The programs that arrived. They have not begun.
    pub arrived: Vec<Arrival>,
    /// The programs that ended.
    pub ended: Vec<Ended>,
}

/// What one program did in a quantum.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Which one.
    pub id: ProgramId,
    /// Processor time of all its threads.
    pub processor_us: f64,
    /// What was counted; `None` on a machine that cannot count. Then the system's own order is kept for ever.
    pub counts: Option<Counts>,
    /// Sampled addresses of instructions, relative to the place where the program's file was loaded.
    pub addresses: Vec<u64>,
}

/// What a machine counts of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Instructions that were executed.
    pub instructions: f64,
    /// Cache lines that came from memory or went there.
    pub requests: f64,
}

/// A program that is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which one.
    pub id: ProgramId,
    /// It came to its end by itself, so its time and its requests are those of a whole run.
    pub whole: bool,
}
