//! The way a program ended.

use std::fmt;

const TIMED_OUT: &str = "timed out";
const OUT_OF_MEMORY: &str = "killed for memory";

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It exited with this status; 0 is success.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// It was ended because its time was over.
    TimedOut,
    /// The kernel killed it, or a part of it, because it used more memory than there was for it.
    OutOfMemory,
    /// It could not be started; the reason.
    Refused(String),
    /// Some of its output could not be kept, so it was ended, and is to run again; the reason.
    Incomplete(String),
}

impl Outcome {
    /// Returns true for exit status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Exited(0)
    }

    /// Returns false if the job is not done, however it ended: it is not tried again now, and has no end in the
    /// journal.
    pub fn is_end(&self) -> bool {
        !matches!(self, Outcome::Incomplete(_))
    }

    /// Reads what [`fmt::Display`] wrote.
    ///
    /// ```
    /// use gristmill_batch::queue::Outcome;
    ///
    /// assert_eq!(Outcome::parse("exit 3"), Some(Outcome::Exited(3)));
    /// assert_eq!(Outcome::parse("perhaps"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Outcome> {
        match text {
            TIMED_OUT => return Some(Outcome::TimedOut),
            OUT_OF_MEMORY => return Some(Outcome::OutOfMemory),
            _ => {}
        }
        let (kind, rest) = text.split_once(' ')?;
        match kind {
            "exit" => rest.parse().ok().map(Outcome::Exited),
            "signal" => rest.parse().ok().map(Outcome::Killed),
            "refused:" => Some(Outcome::Refused(rest.to_owned())),
            "incomplete:" => Some(Outcome::Incomplete(rest.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Exited(status) => write!(f, "exit {status}"),
            Outcome::Killed(signal) => write!(f, "signal {signal}"),
            Outcome::TimedOut => f.write_str(TIMED_OUT),
            Outcome::OutOfMemory => f.write_str(OUT_OF_MEMORY),
            Outcome::Refused(why) => write!(f, "refused: {why}"),
            Outcome::Incomplete(why) => write!(f, "incomplete: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_read_as_it_was_written() {
        for outcome in [
            Outcome::Exited(0),
            Outcome::Exited(255),
            Outcome::Killed(9),
            Outcome::TimedOut,
            Outcome::OutOfMemory,
            Outcome::Refused("no such file".into()),
            Outcome::Incomplete("no room".into()),
        ] {
            assert_eq!(Outcome::parse(&outcome.to_string()), Some(outcome));
        }
    }
}
