//! An error that ends the job, in a form that crosses processes. A worker leaves it in its shared words, and the
//! coordinator turns it into an [`Error`](crate::Error).

use std::any::Any;

use crate::program_error::ProgramError;

/// The number of words of a failure: its kind, and up to four numbers.
pub(crate) const FAILURE_WORDS: usize = 5;

/// The panic of a reduce function, with the key at which it was called.
pub(crate) struct ReducePanic {
    pub key: String,
    pub words: String,
}

/// Returns the words of a panic, if it carries words.
pub(crate) fn words_of(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied())
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(error) = panic.downcast_ref::<ProgramError>() {
        let code = error.number().map_or(String::new(), |code| format!(" with the code {code}"));
        return format!("it failed{code}: {error}");
    }
    let (place, words) = match panic.downcast_ref() {
        Some(ReducePanic { key, words }) => (format!(" in the reduce function, at the key {key}"), Some(&words[..])),
        None => (String::new(), words_of(panic)),
    };
    format!("it panicked{place}: {}", words.filter(|words| !words.is_empty()).unwrap_or("a panic without words"))
}

/// A failure on its way to another process.
#[derive(Default)]
pub(crate) struct Sent {
    pub words: Vec<u64>,
    /// The texts beside the words, which travel as the slot's message with zeros between them.
    pub texts: Vec<String>,
}

/// A failure that has come from another process.
struct Received<'m> {
    words: std::array::IntoIter<u64, FAILURE_WORDS>,
    texts: std::str::Split<'m, char>,
}

/// A part of a failure, which can cross from one process to another.
trait Crosses: Sized {
    fn send(&self, to: &mut Sent);
    /// Returns the next part; `None` if the words make no sense.
    fn receive(from: &mut Received<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Crosses for $type {
            fn send(&self, to: &mut Sent) {
                to.words.push(*self as u64);
            }

            fn receive(from: &mut Received<'_>) -> Option<$type> {
                from.words.next().map(|word| word as $type)
            }
        })*
    };
}

numbers!(usize, u64, i32);

impl Crosses for bool {
    fn send(&self, to: &mut Sent) {
        to.words.push(u64::from(*self));
    }

    fn receive(from: &mut Received<'_>) -> Option<bool> {
        from.words.next().map(|word| word == 1)
    }
}

impl Crosses for String {
    fn send(&self, to: &mut Sent) {
        to.texts.push(self.clone());
    }

    fn receive(from: &mut Received<'_>) -> Option<String> {
        from.texts.next().map(str::to_owned)
    }
}

/// The last part of a failure, because its messages are all the texts that are left.
impl Crosses for ProgramError {
    fn send(&self, to: &mut Sent) {
        to.words.push(self.number().map_or(0, |code| u64::from(code.cast_unsigned()) + 1));
        to.texts.extend_from_slice(self.messages());
    }

    fn receive(from: &mut Received<'_>) -> Option<ProgramError> {
        let code = from.words.next()?.checked_sub(1).map(|code| (code as u32).cast_signed());
        Some(ProgramError::received(from.texts.by_ref(), code))
    }
}

impl Crosses for Doing {
    fn send(&self, to: &mut Sent) {
        to.words.push(*self as u64);
    }

    fn receive(from: &mut Received<'_>) -> Option<Doing> {
        DOINGS.get(from.words.next()? as usize).copied()
    }
}

/// Makes the kinds of failures from a table: each has a number, and parts that can be sent.
macro_rules! failures {
    ($(#[$about:meta])* $all:ident:
        $($(#[$kind:meta])* $number:literal = $name:ident $({ $($part:ident: $type:ty),* })?;)*) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $all {
            $($(#[$kind])* $name $({ $($part: $type),* })?,)*
        }

        impl $all {
            pub fn send(&self) -> Sent {
                let mut to = Sent::default();
                match self {
                    $($all::$name { $($($part),*)? } => {
                        to.words.push($number);
                        $($($part.send(&mut to);)*)?
                    })*
                }
                to
            }

            /// Returns the failure that these words stand for; `None` if they stand for none.
            pub fn receive(words: [u64; FAILURE_WORDS], message: &str) -> Option<$all> {
                let mut from = Received { words: words.into_iter(), texts: message.split('\0') };
                Some(match from.words.next()? {
                    $($number => $all::$name { $($($part: Crosses::receive(&mut from)?),*)? },)*
                    _ => return None,
                })
            }
        }
    };
}

failures! {
    /// An error of a worker that ends the job.
    Failure:
    1 = Read { source: usize, offset: u64, errno: i32 };
    2 = Truncated { source: usize, found: u64 };
    3 = RecordTooLong { source: usize, offset: u64 };
    /// The map function returned an error.
    4 = Rejected { source: usize, offset: u64, error: ProgramError };
    /// [`MapReduce::map_pairs`](crate::MapReduce::map_pairs) returned an error.
    5 = Pairs { error: ProgramError };
    /// The reduce function returned an error.
    6 = Reduce { key: String, error: ProgramError };
    /// The combiner threw an error.
    7 = Combine { error: ProgramError };
    /// A sink returned an error.
    8 = Sink { part: usize, error: ProgramError };
    /// A task emitted other pairs than the first time: `first` pairs then, `again` now.
    9 = OtherPairs { task: usize, first: u64, again: u64 };
    /// The pairs that a step keeps for the next do not fit on the shelf.
    10 = ShelfFull;
    /// A pair to be kept for the next step is larger than an extent.
    11 = PairTooLarge { bytes: usize };
    12 = Conflict { task: usize, what: String };
    13 = RecordCut { source: usize, offset: u64 };
    /// A quoted field of CSV, which begins at `offset`, is not closed before the end of the content or, if `is_cut`,
    /// before the longest record ends.
    14 = QuoteOpen { source: usize, offset: u64, is_cut: bool };
    15 = Compressed { source: usize, offset: u64, why: String };
    /// A part of the result could not be written.
    16 = Output { part: usize, errno: i32 };
    /// A spill file failed, after `bytes` were spilled; for [`Doing::Check`], at the damaged block at `bytes`.
    17 = Spill { folder: usize, doing: Doing, errno: i32, bytes: u64 };
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
