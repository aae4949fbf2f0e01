//! Checks the output files of a command: they must be distinct, and none may be an input.
//!
//! Files are compared by identity, not by name, so links and hard links are seen through. A file that does not exist
//! yet is compared by its folder and name.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use gristmill::files::Source;

use crate::output::side_files::{Standard, directory, standard};
use crate::terminal::failure::Failure;
use crate::terminal::standard_output::standard_output;

/// The outputs of one command.
#[derive(Default)]
pub struct Outputs {
    files: Vec<Output>,
    /// The folders that the command makes or removes, and the options that name them.
    folders: Vec<(&'static str, PathBuf)>,
    /// True if the result may replace the input file.
    in_place: bool,
}

struct Output {
    /// The option in messages.
    option: &'static str,
    name: PathBuf,
    /// `None` for a device, which may be written several times.
    identity: Option<Identity>,
}

/// The identity of a file, independent of its name.
#[derive(PartialEq, Eq)]
enum Identity {
    There { device: u64, inode: u64 },
    NotYet { device: u64, inode: u64, name: OsString },
}

const RESULT: &str = "--output";

impl Outputs {
    /// Starts with the result, which goes to this file or to standard output.
    pub fn begin(result: Option<&Path>) -> Outputs {
        let mut outputs = Outputs::default();
        match result {
            Some(path) => outputs.file(RESULT, path),
            None => {
                let identity =
                    standard_output().and_then(|file| file.metadata()).ok().as_ref().and_then(Identity::there);
                outputs.files.push(Output { option: "the result", name: "standard output".into(), identity });
            }
        }
        outputs
    }

    /// Allows the result to replace its input, as in `sort -o FILE FILE`.
    pub fn in_place(self) -> Outputs {
        Outputs { in_place: true, ..self }
    }

    /// Adds a file.
    pub fn file(&mut self, option: &'static str, path: &Path) {
        self.files.push(Output { option, name: path.to_owned(), identity: Identity::of(path) });
    }

    /// Adds a folder that the command makes or removes.
    pub fn folder(&mut self, option: &'static str, path: &Path) {
        self.file(option, path);
        self.folders.push((option, path.to_owned()));
    }

    /// Adds a folder for unnamed files, which several outputs may share.
    pub fn scratch(&mut self, option: &'static str, path: &Path) {
        self.files.push(Output { option, name: path.to_owned(), identity: None });
    }

    /// Fails if two outputs are the same file, or if one lies in a folder of the command's.
    pub fn check(&self) -> Result<(), Failure> {
        for (number, one) in self.files.iter().enumerate() {
            for other in &self.files[..number] {
                if one.identity.is_some() && one.identity == other.identity {
                    return Err(Failure::Usage(format!(
                        "{} and {} are the same file, {}: give each a file of its own",
                        other.option,
                        one.option,
                        one.name.display()
                    )));
                }
            }
        }
        for one in &self.files {
            let around = self.folders.iter().find(|(option, folder)| *option != one.option && is_in(&one.name, folder));
            if let Some((option, folder)) = around {
                return Err(Failure::Usage(format!(
                    "{} {} lies in {}, and nothing else may lie in the folder of {option}. Name another",
                    one.option,
                    one.name.display(),
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// Fails if an output is among the files and folders that the command names as input.
    pub fn check_named<'p>(&self, inputs: impl Iterator<Item = &'p Path>) -> Result<(), Failure> {
        for input in inputs {
            self.check_read(input, input)?;
            let inside = self.folders.iter().find(|(_, folder)| input.is_dir() && is_seen_in(folder, input));
            if let Some((option, folder)) = inside {
                return Err(Failure::Usage(format!(
                    "the folder of {option}, {}, lies in {}, which is read with all that is in it. Name one elsewhere, or \
                     let its name begin with a dot",
                    folder.display(),
                    input.display()
                )));
            }
        }
        Ok(())
    }

    /// Fails if an output is among the files that the command reads.
    pub fn check_sources(&self, sources: &[Source]) -> Result<(), Failure> {
        sources.iter().try_for_each(|source| self.check_read(&source.path, &source.name))
    }

    fn check_read(&self, path: &Path, name: &Path) -> Result<(), Failure> {
        let Some(identity) = Identity::of(path) else { return Ok(()) };
        let same = self.files.iter().find(|output| output.identity.as_ref() == Some(&identity));
        match same {
            Some(output) if !(self.in_place && output.option == RESULT) => Err(Failure::Usage(format!(
                "{} {} is also an input, {}: choose another file",
                output.option,
                output.name.display(),
                name.display()
            ))),
            _ => Ok(()),
        }
    }
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        match standard(path) {
            Some(Standard::Output) => Identity::there(&standard_output().ok()?.metadata().ok()?),
            Some(Standard::Error) => None,
            None => match fs::metadata(path) {
                Ok(facts) => Identity::there(&facts),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let facts = fs::metadata(directory(path)).ok()?;
                    Some(Identity::NotYet {
                        device: facts.dev(),
                        inode: facts.ino(),
                        name: path.file_name()?.to_owned(),
                    })
                }
                Err(_) => None,
            },
        }
    }

    fn there(facts: &Metadata) -> Option<Identity> {
        let is_device = facts.file_type().is_char_device() || facts.file_type().is_block_device();
        (!is_device).then(|| Identity::There { device: facts.dev(), inode: facts.ino() })
    }
}

/// Returns the canonical path, also of a file that does not exist yet.
fn resolved(path: &Path) -> Option<PathBuf> {
    let there = path.canonicalize();
    there
        .or_else(|_| Ok::<_, io::Error>(directory(path).canonicalize()?.join(path.file_name().unwrap_or_default())))
        .ok()
}

fn is_in(path: &Path, folder: &Path) -> bool {
    match (resolved(path), resolved(folder)) {
        (Some(path), Some(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Returns true if a folder lies in another and is not hidden there.
fn is_seen_in(folder: &Path, around: &Path) -> bool {
    let (Some(folder), Some(around)) = (resolved(folder), resolved(around)) else { return false };
    let is_hidden = |part: &std::ffi::OsStr| part.as_encoded_bytes().starts_with(b".");
    folder.strip_prefix(around).is_ok_and(|inside| !inside.iter().any(is_hidden))
}
