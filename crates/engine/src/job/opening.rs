//! The look at an input before its job: which files there are, and which of them are left out or set aside.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::left_out::{LeftOut, Tallies};
use crate::input::look::InputNews;
use crate::input::paths::{Input, Opened, nothing_left};
use crate::input::source::Source;
use crate::job::bad_files;
use crate::memory::is_limit;

/// What a program says of a file that it has looked at ([`Input::sift`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be read.
    Fit,
    /// It is a file of another kind, and why that is known. If it was found below a directory it is left out, else it is bad.
    OtherKind(String),
    /// It should be of the right kind, and cannot be read, and why.
    Bad(String),
    /// To read it takes more than this job may take: what, how much, and how much it may. That is no fault of the file, so it is
    /// an error even if bad files are set aside.
    TooLarge(String),
}

impl Verdict {
    /// The sentence about a file, unless that is fit.
    fn error(self, path: &Path) -> Option<Error> {
        match self {
            Verdict::Fit => None,
            Verdict::OtherKind(why) | Verdict::Bad(why) => Some(Error::Unfit { path: path.to_owned(), why }),
            Verdict::TooLarge(why) => Some(Error::TooLarge { what: format!("{}: {why}", path.display()) }),
        }
    }

    /// The same verdict, said in other words.
    pub fn map(self, words: impl FnOnce(String) -> String) -> Verdict {
        match self {
            Verdict::Fit => Verdict::Fit,
            Verdict::OtherKind(why) => Verdict::OtherKind(words(why)),
            Verdict::Bad(why) => Verdict::Bad(words(why)),
            Verdict::TooLarge(why) => Verdict::TooLarge(words(why)),
        }
    }
}

/// What is wrong with a file.
impl From<String> for Verdict {
    fn from(why: String) -> Verdict {
        Verdict::Bad(why)
    }
}

/// What was found when a file was read: a lack of memory or of file descriptors is no fault of the file.
impl From<io::Error> for Verdict {
    fn from(error: io::Error) -> Verdict {
        let why = error.to_string();
        if is_limit(&error) { Verdict::TooLarge(why) } else { Verdict::Bad(why) }
    }
}

impl Input {
    /// The files that the paths lead to: a program that must know a header, or a size, looks here before its job runs.
    /// They are looked for once; what cannot be read twice is copied now.
    ///
    /// # Errors
    /// As a job that reads this input: a path that leads nowhere, an empty directory. [`Error::Setting`] for a stream that is
    /// read as it comes ([`Input::read_once`]).
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

    /// The same for those who only want to know which files there are.
    ///
    /// # Errors
    /// As a job that reads this input.
    pub fn look(&mut self) -> Result<&[Source]> {
        let opened = self.open()?;
        Ok(&self.opened.insert(opened).sources)
    }

    /// Shows each file to a program that reads only some kinds of files. Those that it cannot read are left out, set aside, or
    /// an error: see [`Verdict`].
    ///
    /// # Errors
    /// As [`Input::sources`]; [`Error::Unfit`] for a file that is bad.
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
        if sources.is_empty() {
            return Err(nothing_left(&left_out, &bad));
        }
        self.opened = Some(Arc::new(Opened { sources: sources.into(), kept: opened.kept.clone(), bad }));
        Ok(())
    }

    /// If bad files are set aside, calls `check` for each file, in processes of their own, and sets those aside of which it
    /// says that they are bad.
    ///
    /// # Errors
    /// As [`Input::sift`].
    pub fn check(&mut self, check: impl Fn(&Source) -> Verdict + Sync) -> Result<()> {
        if self.look.skip_bad_files == 0 {
            return Ok(());
        }
        let found = bad_files::all(&self.open()?.sources, self.look.memory_bytes, true, |source| {
            check(source).error(&source.name).map_or(Ok(()), Err)
        })?;
        self.set_aside_those(&found)
    }

    /// Sets aside what a check has found: numbers of sources, each with the whole sentence.
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
        if sources.is_empty() {
            return Err(nothing_left(&Tallies::default(), &bad));
        }
        self.opened = Some(Arc::new(Opened { sources: sources.into(), kept: opened.kept.clone(), bad }));
        Ok(())
    }

    /// The files that are read. If bad ones are set aside, all of them are read to their ends first.
    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        let opened = self.find()?;
        if self.opened.is_some() || self.look.skip_bad_files == 0 {
            return Ok(opened);
        }
        let bytes = opened.sources.iter().map(|source| source.bytes).sum();
        self.look.news.tell(&InputNews::Checking { files: opened.sources.len(), bytes });
        let found = bad_files::all(&opened.sources, self.look.memory_bytes, false, bad_files::read_to_the_end)?;
        let mut input = self.clone();
        input.opened = Some(opened);
        input.set_aside_those(&found)?;
        input.find()
    }
}
