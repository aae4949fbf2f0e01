//! Paths that exist but are not read, counted by reason.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why a path was not read. None of these is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// It was found below a directory, and its name begins with a dot.
    Hidden,
    /// It is a symbolic link found below a directory.
    Link,
    /// It is a symbolic link to a directory that contains it.
    Loop,
    /// It is a FIFO, a socket or a device that was found, not named.
    Special,
    /// Its file was already found by another path.
    Again,
    /// It was found below a directory, and the program does not read files of its kind ([`Verdict::OtherKind`]).
    ///
    /// [`Verdict::OtherKind`]: crate::files::Verdict::OtherKind
    OtherKind,
}

/// All reasons.
pub(crate) const REASONS: [LeftOut; 6] =
    [LeftOut::Hidden, LeftOut::Link, LeftOut::Loop, LeftOut::Special, LeftOut::Again, LeftOut::OtherKind];

impl LeftOut {
    /// Returns words for a message: the singular, the plural, and what happened, singular and plural.
    fn words(self) -> [&'static str; 4] {
        match self {
            LeftOut::Hidden => ["hidden name", "hidden names", "was left out", "were left out"],
            LeftOut::Link => ["symbolic link", "symbolic links", "was not followed", "were not followed"],
            LeftOut::Loop => [
                "symbolic link",
                "symbolic links",
                "leads back to a directory above it and was not followed",
                "lead back to a directory above them and were not followed",
            ],
            LeftOut::Special => {
                ["FIFO, socket or device", "FIFOs, sockets or devices", "was left out", "were left out"]
            }
            LeftOut::Again => [
                "path",
                "paths",
                "was skipped because its file had been found before",
                "were skipped because their files had been found before",
            ],
            LeftOut::OtherKind => ["file of another kind", "files of another kind", "was left out", "were left out"],
        }
    }
}

/// The number of paths left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// The reason.
    pub why: LeftOut,
    /// The number of paths.
    pub count: u64,
    /// The first path.
    pub first: PathBuf,
}

impl fmt::Display for Tally {
    /// Writes, for example, `3 symbolic links were not followed, the first of them a/b`.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, several, was, were] = self.why.words();
        match self.count {
            1 => write!(to, "1 {one} {was}: {}", self.first.display()),
            count => write!(to, "{count} {several} {were}, the first of them {}", self.first.display()),
        }
    }
}

/// All paths left out so far.
#[derive(Default)]
pub(crate) struct Tallies(Vec<Tally>);

impl Tallies {
    pub fn add(&mut self, why: LeftOut, path: &Path) {
        match self.0.iter_mut().find(|tally| tally.why == why) {
            Some(tally) => tally.count += 1,
            None => self.0.push(Tally { why, count: 1, first: path.to_owned() }),
        }
    }

    /// Returns the tally of this reason, if any path was left out for it.
    pub fn of(&self, why: LeftOut) -> Option<&Tally> {
        self.0.iter().find(|tally| tally.why == why)
    }

    pub fn has(&self, why: LeftOut) -> bool {
        self.0.iter().any(|tally| tally.why == why)
    }

    /// Returns all tallies as one sentence.
    pub fn sentence(&self) -> String {
        self.0.iter().map(Tally::to_string).collect::<Vec<_>>().join("; ")
    }
}
