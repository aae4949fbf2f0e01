//! An error that ends the job, in numbers that cross processes: what a worker leaves in its words, and the coordinator makes an
//! [`Error`](crate::Error) of.

/// Words of a failure.
pub(crate) const FAILURE_WORDS: usize = 4;

/// An error that a worker met and that ends the job, in words that cross processes: what kind, in which
/// source, and more numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Read {
        source: usize,
        offset: u64,
        errno: i32,
    },
    Truncated {
        source: usize,
        found: u64,
    },
    RecordTooLong {
        source: usize,
        offset: u64,
    },
    /// The words travel as the slot's message.
    Rejected {
        source: usize,
        offset: u64,
        why: String,
    },
    /// A task gave other pairs than the first time: so many then, so many now.
    OtherPairs {
        task: usize,
        first: u64,
        again: u64,
    },
    /// What a step leaves for the next is more than the shelf holds.
    ShelfFull,
    /// What a reducer gathers in a step is more than its share of the memory.
    StepFull,
    /// A pair to be left for the next step is larger than an extent.
    PairTooLarge {
        bytes: usize,
    },
    /// The words travel as the slot's message.
    Conflict {
        task: usize,
        what: String,
    },
    RecordCut {
        source: usize,
        offset: u64,
    },
    /// As `Rejected`.
    Compressed {
        source: usize,
        offset: u64,
        why: String,
    },
    /// A part of the result cannot be written.
    Output {
        part: usize,
        errno: i32,
    },
    Spill {
        folder: usize,
        doing: Doing,
        errno: i32,
        /// Spilled until then; of a block that is not what was written, where it lies.
        bytes: u64,
    },
}

/// What was being done with a spill file when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Open,
    Write,
    Read,
    /// What was read is not what was written.
    Check,
}

const DOINGS: [Doing; 4] = [Doing::Open, Doing::Write, Doing::Read, Doing::Check];

impl Failure {
    pub fn encode(&self) -> [u64; FAILURE_WORDS] {
        match *self {
            Failure::Read { source, offset, errno } => [1, source as u64, errno as u64, offset],
            Failure::Truncated { source, found } => [2, source as u64, found, 0],
            Failure::RecordTooLong { source, offset } => [3, source as u64, offset, 0],
            Failure::Rejected { source, offset, .. } => [4, source as u64, offset, 0],
            Failure::Spill { folder, doing, errno, bytes } => [10 + doing as u64, folder as u64, errno as u64, bytes],
            Failure::Output { part, errno } => [14, part as u64, errno as u64, 0],
            Failure::ShelfFull => [5, 0, 0, 0],
            Failure::StepFull => [15, 0, 0, 0],
            Failure::PairTooLarge { bytes } => [6, 0, bytes as u64, 0],
            Failure::Conflict { task, .. } => [7, task as u64, 0, 0],
            Failure::OtherPairs { task, first, again } => [16, task as u64, first, again],
            Failure::RecordCut { source, offset } => [8, source as u64, offset, 0],
            Failure::Compressed { source, offset, .. } => [9, source as u64, offset, 0],
        }
    }

    pub fn decode(
        [kind, source, number, more]: [u64; FAILURE_WORDS],
        message: impl FnOnce() -> String,
    ) -> Option<Failure> {
        let source = source as usize;
        match kind {
            0 => None,
            1 => Some(Failure::Read { source, offset: more, errno: number as i32 }),
            2 => Some(Failure::Truncated { source, found: number }),
            3 => Some(Failure::RecordTooLong { source, offset: number }),
            4 => Some(Failure::Rejected { source, offset: number, why: message() }),
            5 => Some(Failure::ShelfFull),
            6 => Some(Failure::PairTooLarge { bytes: number as usize }),
            7 => Some(Failure::Conflict { task: source, what: message() }),
            8 => Some(Failure::RecordCut { source, offset: number }),
            9 => Some(Failure::Compressed { source, offset: number, why: message() }),
            spill @ 10..14 => {
                let doing = DOINGS[spill as usize - 10];
                Some(Failure::Spill { folder: source, doing, errno: number as i32, bytes: more })
            }
            14 => Some(Failure::Output { part: source, errno: number as i32 }),
            15 => Some(Failure::StepFull),
            16 => Some(Failure::OtherPairs { task: source, first: number, again: more }),
            other => panic!("a failure of kind {other} was left"),
        }
    }
}
