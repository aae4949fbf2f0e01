//! The names under which the history keeps a program and its input. Arguments themselves are not kept.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_queue::{Job, digest};

/// The identity of a program and its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file name of the program.
    pub name: String,
    /// The name and a digest of the program's file: its path, size and time.
    pub build: String,
    /// A digest of the arguments, and of the sizes of the files that they name.
    pub input: String,
}

impl Identity {
    pub fn of(job: &Job) -> Identity {
        let words = words(job);
        let directory = job.directory.as_deref().unwrap_or(Path::new(""));
        let program = Path::new(&words[0]);
        let name = program.file_name().unwrap_or(&words[0]).to_string_lossy().into_owned();
        let found = found(program, directory);
        let about = |path: &Path| fs::metadata(path).map(|file| format!("{} {}", file.size(), file.mtime()));
        let build = digest([
            found.as_ref().map(|path| path.as_os_str().as_bytes()).unwrap_or_default(),
            found.as_ref().and_then(|path| about(path).ok()).unwrap_or_default().as_bytes(),
        ]);
        let files = words[1..].iter().map(PathBuf::from).chain(job.inputs.iter().cloned());
        let sizes: Vec<String> = files
            .filter_map(|path| fs::metadata(directory.join(path)).ok())
            .filter(fs::Metadata::is_file)
            .map(|file| file.size().to_string())
            .collect();
        let parts = job.words.iter().map(|word| word.as_bytes()).chain(sizes.iter().map(String::as_bytes));
        Identity { build: format!("{name}-{build:016x}"), input: format!("{:016x}", digest(parts)), name }
    }
}

/// Returns the words of the program that a job runs: those of a shell's line, unless it is more than one command.
fn words(job: &Job) -> Vec<OsString> {
    if let [_, flag, line] = &job.words[..]
        && flag == "-c"
        && let Some(line) = line.to_str()
        && !line.contains(['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '\'', '"', '\\'])
    {
        let words: Vec<OsString> = line.split_ascii_whitespace().map(OsString::from).collect();
        if words.first().is_some_and(|word| !word.as_bytes().contains(&b'=')) {
            return words;
        }
    }
    job.words.clone()
}

/// Returns the file of a program.
fn found(program: &Path, directory: &Path) -> Option<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Some(directory.join(program));
    }
    let path = std::env::var_os("PATH");
    let folders = std::env::split_paths(path.as_deref().unwrap_or(OsStr::new(""))).collect::<Vec<_>>();
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_file_and_its_input_by_arguments_and_sizes() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("in");
        let of = |line: &str, size: usize| {
            fs::write(&file, vec![0; size]).expect("written");
            Identity::of(&Job { directory: Some(dir.path().into()), ..Job::shell(line) })
        };
        let first = of("cat in", 5);
        assert_eq!((first.name.as_str(), &first), ("cat", &of("cat in", 5)));
        assert_eq!((&of("cat in", 6).build, of("cat in", 6).input == first.input), (&first.build, false));
        assert_ne!(of("cat -n in", 5).input, first.input);
        assert_ne!(of("wc in", 5).build, first.build);
        assert_eq!(of("cat in | wc", 5).name, "sh");
        assert_eq!(of("./cat in", 5).name, "cat");
    }
}
