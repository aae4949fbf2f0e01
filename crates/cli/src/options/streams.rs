//! Streams among the inputs of a command. Their bytes can be read once, so each serves one purpose.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::options::inputs::name_of;
use crate::terminal::failure::Failure;

/// Fails if two of `named`, which are paths with the options that name them, are the same pipe, socket or terminal.
pub fn check_once<'p>(named: impl Iterator<Item = (&'static str, &'p Path)>) -> Result<(), Failure> {
    let mut seen: Vec<((u64, u64), &str)> = Vec::new();
    for (option, path) in named {
        let Some(identity) = identity(path) else { continue };
        if let Some((_, before)) = seen.iter().find(|(other, _)| *other == identity) {
            let name = name_of(path);
            let twice =
                if *before == option { format!("twice, as {option}") } else { format!("as {before} and as {option}") };
            return Err(Failure::Usage(format!(
                "{name} is a stream, whose bytes can be read once, and it is named {twice}: write it to a file, or name another file"
            )));
        }
        seen.push((identity, option));
    }
    Ok(())
}

/// Returns the device and inode number of a stream; `None` for what can be read twice, or not at all.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let facts = match path == Path::new("-") {
        true => standard_input(),
        false => fs::metadata(path),
    };
    facts.ok().filter(is_stream).map(|facts| (facts.dev(), facts.ino()))
}

fn standard_input() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}

/// Terminals are the only devices that are streams: the others are refused, and /dev/null is always empty.
fn is_stream(facts: &Metadata) -> bool {
    let kind = facts.file_type();
    let is_terminal = kind.is_char_device() && rustix::fs::major(facts.rdev()) != 1;
    kind.is_fifo() || kind.is_socket() || is_terminal
}
