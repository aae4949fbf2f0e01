//! An error that ends the job, in a form that crosses processes. A worker leaves it in its shared words, and the
//! coordinator turns it into an [`Error`](crate::Error).

use crate::program_error::ProgramError;

/// The number of words of a failure.
pub(crate) const FAILURE_WORDS: usize = 4;

/// An error of a worker that ends the job, as words that cross processes: the kind, the source, and further numbers.
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
    /// The map function returned an error. Its messages travel as the slot's message.
    Rejected {
        source: usize,
        offset: u64,
        error: ProgramError,
    },
    /// [`MapReduce::map_pairs`](crate::MapReduce::map_pairs) returned an error.
    Pairs {
        error: ProgramError,
    },
    /// The reduce function returned an error. The key travels before the messages.
    Reduce {
        key: String,
        error: ProgramError,
    },
    /// The combiner threw an error. Its messages travel as the slot's message.
    Combine {
        error: ProgramError,
    },
    /// A sink returned an error. Its messages travel as the slot's message.
    Sink {
        part: usize,
        error: ProgramError,
    },
    /// A task emitted other pairs than the first time: `first` pairs then, `again` now.
    OtherPairs {
        task: usize,
        first: u64,
        again: u64,
    },
    /// The pairs that a step keeps for the next do not fit on the shelf.
    ShelfFull,
    /// A pair to be kept for the next step is larger than an extent.
    PairTooLarge {
        bytes: usize,
    },
    /// `what` travels as the slot's message.
    Conflict {
        task: usize,
        what: String,
    },
    RecordCut {
        source: usize,
        offset: u64,
    },
    /// A quoted field of CSV is not closed before the end of the content or, if `is_cut`, before the longest record
    /// ends.
    QuoteOpen {
        source: usize,
        /// The offset of the quote that opens the field.
        offset: u64,
        is_cut: bool,
    },
    /// `why` travels as the slot's message.
    Compressed {
        source: usize,
        offset: u64,
        why: String,
    },
    /// A part of the result could not be written.
    Output {
        part: usize,
        errno: i32,
    },
    Spill {
        folder: usize,
        doing: Doing,
        errno: i32,
        /// Bytes spilled so far; for [`Doing::Check`], the offset of the damaged block.
        bytes: u64,
    },
}

/// The operation on a spill file that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Open,
    Write,
    Read,
    /// The block that was read is not the one that was written.
    Check,
    /// Writing would leave less free room than must be kept.
    KeepFree,
}

const DOINGS: [Doing; 5] = [Doing::Open, Doing::Write, Doing::Read, Doing::Check, Doing::KeepFree];

impl Failure {
    pub fn encode(&self) -> [u64; FAILURE_WORDS] {
        match *self {
            Failure::Read { source, offset, errno } => [1, source as u64, errno as u64, offset],
            Failure::Truncated { source, found } => [2, source as u64, found, 0],
            Failure::RecordTooLong { source, offset } => [3, source as u64, offset, 0],
            Failure::Rejected { source, offset, ref error } => [4, source as u64, offset, code_word(error)],
            Failure::Pairs { ref error } => [18, 0, 0, code_word(error)],
            Failure::Reduce { ref error, .. } => [19, 0, 0, code_word(error)],
            Failure::Sink { part, ref error } => [20, part as u64, 0, code_word(error)],
            Failure::Combine { ref error } => [21, 0, 0, code_word(error)],
            Failure::Spill { folder, doing, errno, bytes } => [10 + doing as u64, folder as u64, errno as u64, bytes],
            Failure::Output { part, errno } => [17, part as u64, errno as u64, 0],
            Failure::ShelfFull => [5, 0, 0, 0],
            Failure::PairTooLarge { bytes } => [6, 0, bytes as u64, 0],
            Failure::Conflict { task, .. } => [7, task as u64, 0, 0],
            Failure::OtherPairs { task, first, again } => [16, task as u64, first, again],
            Failure::RecordCut { source, offset } => [8, source as u64, offset, 0],
            Failure::Compressed { source, offset, .. } => [9, source as u64, offset, 0],
            Failure::QuoteOpen { source, offset, is_cut } => [22, source as u64, offset, u64::from(is_cut)],
        }
    }

    /// Returns the failure that these words stand for; `None` if they stand for none.
    pub fn decode(
        [kind, source, number, more]: [u64; FAILURE_WORDS],
        message: impl FnOnce() -> String,
    ) -> Option<Failure> {
        let source = source as usize;
        match kind {
            1 => Some(Failure::Read { source, offset: more, errno: number as i32 }),
            2 => Some(Failure::Truncated { source, found: number }),
            3 => Some(Failure::RecordTooLong { source, offset: number }),
            4 => {
                let error = ProgramError::from_message(&message(), code(more));
                Some(Failure::Rejected { source, offset: number, error })
            }
            5 => Some(Failure::ShelfFull),
            6 => Some(Failure::PairTooLarge { bytes: number as usize }),
            7 => Some(Failure::Conflict { task: source, what: message() }),
            8 => Some(Failure::RecordCut { source, offset: number }),
            9 => Some(Failure::Compressed { source, offset: number, why: message() }),
            spill @ 10..=14 => {
                let doing = DOINGS[spill as usize - 10];
                Some(Failure::Spill { folder: source, doing, errno: number as i32, bytes: more })
            }
            16 => Some(Failure::OtherPairs { task: source, first: number, again: more }),
            17 => Some(Failure::Output { part: source, errno: number as i32 }),
            18 => Some(Failure::Pairs { error: ProgramError::from_message(&message(), code(more)) }),
            19 => {
                let message = message();
                let (key, why) = message.split_once('\0').unwrap_or((&message, ""));
                Some(Failure::Reduce { key: key.to_owned(), error: ProgramError::from_message(why, code(more)) })
            }
            20 => {
                let error = ProgramError::from_message(&message(), code(more));
                Some(Failure::Sink { part: source, error })
            }
            21 => Some(Failure::Combine { error: ProgramError::from_message(&message(), code(more)) }),
            22 => Some(Failure::QuoteOpen { source, offset: number, is_cut: more == 1 }),
            _ => None,
        }
    }
}

/// Returns the code of an error as a word: 0 if it has none.
fn code_word(error: &ProgramError) -> u64 {
    error.number().map_or(0, |code| u64::from(code.cast_unsigned()) + 1)
}

/// The reverse of [`code_word`].
fn code(word: u64) -> Option<i32> {
    word.checked_sub(1).map(|code| (code as u32).cast_signed())
}
