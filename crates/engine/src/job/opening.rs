//! The inspection of an input before its job: the files to read, and those that are left out or set aside.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::left_out::{LeftOut, Tallies};
use crate::input::look::{BadFile, InputNews};
use crate::input::paths::{Input, Opened, nothing_left};
use crate::input::source::Source;
use crate::job::bad_files;
use crate::memory::is_limit;

/// The verdict of a program on a file ([`Input::sift`]).
// Exhaustive: a program that hands a verdict on says something else about each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be read.
    Fit,
    /// It is a file of another kind; the string says why. If it was found below a directory it is left out, otherwise
    /// it is bad.
    OtherKind(String),
    /// It should be of the right kind but cannot be read; the string says why.
    Bad(String),
    /// Reading it takes more than this job may take; the string says what, how much, and the limit. That is no fault of
    /// the file, so it is an error even if bad files are set aside.
    TooLarge(String),
}

impl Verdict {
    /// Returns the error for a file, unless the file is fit.
    fn error(self, path: &Path) -> Option<Error> {
        match self {
            Verdict::Fit => None,
            Verdict::OtherKind(why) | Verdict::Bad(why) => Some(Error::Unfit { path: path.to_owned(), why }),
            Verdict::TooLarge(why) => Some(Error::TooLarge { what: format!("{}: {why}", path.display()) }),
        }
    }

    /// Returns the same verdict in other words.
    pub fn map(self, words: impl FnOnce(String) -> String) -> Verdict {
        match self {
            Verdict::Fit => Verdict::Fit,
            Verdict::OtherKind(why) => Verdict::OtherKind(words(why)),
            Verdict::Bad(why) => Verdict::Bad(words(why)),
            Verdict::TooLarge(why) => Verdict::TooLarge(words(why)),
        }
    }
}

/// Makes [`Verdict::Bad`] of a reason.
impl From<String> for Verdict {
    fn from(why: String) -> Verdict {
        Verdict::Bad(why)
    }
}

/// Makes a verdict of an error while reading a file: a lack of memory or of file descriptors is no fault of the file.
impl From<io::Error> for Verdict {
    fn from(error: io::Error) -> Verdict {
        let why = error.to_string();
        if is_limit(&error) { Verdict::TooLarge(why) } else { Verdict::Bad(why) }
    }
}

impl Input {
    /// Returns the files that the paths lead to, for a program that must know a header or a size before its job runs.
    /// They are searched for once; streams, which cannot be read twice, are copied now.
    ///
    /// # Errors
    /// Those of a job that reads this input, such as a path that leads nowhere or an empty directory.
    /// [`Error::Setting`] for a stream that is read only once ([`Input::read_once`]).
    pub fn sources(&mut self) -> Result<&[Source]> {
        let sources = self.look()?;
        match sources.iter().find(|source| source.is_stream()) {
            Some(stream) => Err(Error::Setting(format!(
                "{} cannot be read with Input::read_once, because this program looks at its input before the job: leave out Input::read_once",
                stream.name.display()
            ))),
            None => Ok(sources),
        }
    }

    /// Returns the same files as [`Input::sources`], and allows streams that are read only once: for callers that do
    /// not read the files.
    ///
    /// # Errors
    /// Those of a job that reads this input.
    pub fn look(&mut self) -> Result<&[Source]> {
        let opened = self.open()?;
        Ok(&self.set_opened(opened).sources)
    }

    /// Calls `look_at` with each file, for a program that reads only some kinds of files. A file that it cannot read is
    /// left out, set aside, or an error: see [`Verdict`].
    ///
    /// # Errors
    /// Those of [`Input::sources`], and [`Error::Unfit`] for a bad file.
    pub fn sift(&mut self, mut look_at: impl FnMut(&Source) -> Verdict) -> Result<()> {
        self.sources()?;
        let opened = self.open()?;
        let (mut left_out, mut bad, mut sources) = (Tallies::default(), opened.bad.clone(), Vec::new());
        for source in opened.sources.iter() {
            match look_at(source) {
                Verdict::Fit => sources.push(source.clone()),
                Verdict::OtherKind(_) if source.is_below => left_out.add(LeftOut::OtherKind, &source.name),
                verdict => {
                    if let Some(error) = verdict.error(&source.name) {
                        self.look.set_aside(&source.name, error, &mut bad)?;
                    }
                }
            }
        }
        self.look.tell_left_out(&left_out);
        self.keep_only(sources, &opened, bad, &left_out)
    }

    /// Calls `check` for each file in separate processes and sets the bad ones aside. Does nothing if bad files are not
    /// to be set aside.
    ///
    /// # Errors
    /// Those of [`Input::sift`].
    pub fn check(&mut self, check: impl Fn(&Source) -> Verdict + Sync) -> Result<()> {
        if self.look.skip_bad_files == 0 {
            return Ok(());
        }
        let found = bad_files::all(&self.open()?.sources, &self.look, true, |source| {
            check(source).error(&source.name).map_or(Ok(()), Err)
        })?;
        self.set_aside_those(&found)
    }

    /// Sets aside the files that a check has found; `found` maps the numbers of sources to messages.
    fn set_aside_those(&mut self, found: &HashMap<usize, String>) -> Result<()> {
        let opened = self.open()?;
        let (mut bad, mut sources) = (opened.bad.clone(), Vec::new());
        for (number, source) in opened.sources.iter().enumerate() {
            match found.get(&number) {
                None => sources.push(source.clone()),
                Some(cause) => {
                    let error = Error::NoInput { what: cause.clone() };
                    self.look.set_aside(&source.name, error, &mut bad)?;
                }
            }
        }
        self.keep_only(sources, &opened, bad, &Tallies::default())
    }

    /// Continues with `sources`, the files of `opened` that remain.
    fn keep_only(
        &mut self,
        sources: Vec<Source>,
        opened: &Opened,
        bad: Vec<BadFile>,
        left_out: &Tallies,
    ) -> Result<()> {
        if sources.is_empty() {
            return Err(nothing_left(left_out, &bad));
        }
        self.set_opened(Arc::new(Opened { sources: sources.into(), kept: opened.kept.clone(), bad }));
        Ok(())
    }

    /// Returns the files that are read. If bad ones are set aside, reads all of them to their ends first.
    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        let opened = self.find()?;
        if self.opened().is_some() || self.look.skip_bad_files == 0 {
            return Ok(opened);
        }
        let bytes = opened.sources.iter().map(|source| source.bytes).sum();
        self.look.news.tell(&InputNews::Checking { files: opened.sources.len(), bytes });
        let found = bad_files::all(&opened.sources, &self.look, false, bad_files::read_to_the_end)?;
        let mut input = self.clone();
        input.set_opened(opened);
        input.set_aside_those(&found)?;
        input.find()
    }
}
