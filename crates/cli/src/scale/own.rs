//! One of our own applications as a command: its words, and the statistics that it leaves.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::{fs, io};

use clap::{ArgMatches, CommandFactory, Subcommand};
use gristmill_os::room::temporary_folder;

use super::phases::Phases;
use super::words::PLACE;
use crate::commands::Applications;
use crate::terminal::failure::no_temporary;

/// The options that are added to those of the application, and why it may not have them already.
const OURS: [(&str, &str); 4] = [
    ("--workers", "it is what varies, so write it before the application"),
    ("--stats", "the report is made of its statistics"),
    ("--quiet", "it is always given"),
    ("--no-history", "it is always given"),
];

/// One of our own applications, which is run with several numbers of workers.
pub struct Own {
    /// Holds the statistics of the last run.
    folder: tempfile::TempDir,
    /// The files and folders that it reads, as they were named.
    pub inputs: Vec<OsString>,
}

impl Own {
    /// Where further options have their place among the words: behind the name of the application.
    pub const OPTIONS_AT: usize = 2;

    /// Returns the command that runs an application of this program with its arguments, and what reads its statistics.
    ///
    /// # Errors
    /// The first word names no application, or the arguments are wrong; a sentence.
    pub fn command(words: &[OsString]) -> io::Result<Result<(Vec<OsString>, Own), String>> {
        let inputs = match inputs(words) {
            Ok(inputs) => inputs,
            Err(why) => return Ok(Err(why)),
        };
        let folder = tempfile::tempdir_in(temporary_folder()).map_err(no_temporary)?;
        let mut command = vec![std::env::current_exe()?.into_os_string()];
        command.extend_from_slice(&words[..1]);
        command.extend(["--workers", PLACE, "--quiet", "--no-history", "--stats"].map(OsString::from));
        command.push(folder.path().join("stats.json").into_os_string());
        command.extend_from_slice(&words[1..]);
        Ok(Ok((command, Own { folder, inputs })))
    }

    /// Copies the inputs into memory. Returns the folder of the copies, and each input with its copy; `None` if they are no files
    /// or folders, have more than `bytes_max`, or the machine has no file system in memory.
    pub fn in_memory(&self, bytes_max: u64) -> Option<(tempfile::TempDir, Vec<(OsString, OsString)>)> {
        let mut left = bytes_max;
        let mut folder = None;
        let mut copies = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            size(Path::new(input), &mut left)?;
            let folder: &tempfile::TempDir = match &mut folder {
                Some(folder) => folder,
                none => none.insert(tempfile::tempdir_in(MEMORY).ok()?),
            };
            let place = folder.path().join(number.to_string());
            fs::create_dir(&place).ok()?;
            let copy = place.join(Path::new(input).file_name().unwrap_or(OsStr::new("input")));
            copy_all(Path::new(input), &copy).ok()?;
            copies.push((input.clone(), copy.into_os_string()));
        }
        Some((folder?, copies))
    }

    /// Returns the phases of the last run.
    ///
    /// # Errors
    /// The run has left no statistics.
    pub fn phases(&self) -> io::Result<Phases> {
        Phases::read(&self.folder.path().join("stats.json"))
    }
}

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// Subtracts the bytes of a file, or of all files of a folder. `None` if there are too many, or if it is neither.
fn size(path: &Path, left: &mut u64) -> Option<()> {
    let metadata = path.metadata().ok()?;
    if metadata.is_dir() {
        return path.read_dir().ok()?.try_for_each(|entry| size(&entry.ok()?.path(), left));
    }
    *left = left.checked_sub(metadata.len()).filter(|_| metadata.is_file())?;
    Some(())
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir(to)?;
    from.read_dir()?.try_for_each(|entry| {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))
    })
}

/// Returns the inputs that an application is given.
///
/// # Errors
/// The words name no application, or its arguments are wrong; a sentence.
pub fn inputs(words: &[OsString]) -> Result<Vec<OsString>, String> {
    let name = words[0].to_string_lossy();
    if !Applications::has_subcommand(&name) {
        return Err(format!(
            "{name} is none of Gristmill's applications; write any other command behind --, with {PLACE} in it"
        ));
    }
    for (option, why) in OURS {
        let is_option = |word: &OsString| word == option || word.to_string_lossy().starts_with(&format!("{option}="));
        if words.iter().any(is_option) {
            return Err(format!("leave {option} of {name} out: {why}"));
        }
    }
    let added = ["--workers", "1", "--quiet", "--no-history", "--stats", "stats.json"].map(OsString::from);
    let command = [&["gristmill".into(), words[0].clone()], &added[..], &words[1..]].concat();
    let mut definition = crate::Command::command();
    definition.build();
    match definition.try_get_matches_from_mut(command) {
        Ok(matches) => {
            let of = definition.find_subcommand(OsStr::new(&*name)).expect("it was found above");
            let matches = matches.subcommand_matches(&name).expect("it was parsed");
            named(of, matches).ok_or_else(|| format!("{name} needs a file: standard input can be read only once"))
        }
        Err(error) if !error.use_stderr() => Err(format!("gristmill {name} --help tells the options of {name}")),
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(format!("{name}: {}", first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Returns the values of all positional arguments; `None` if the application would read standard input.
fn named(of: &clap::Command, matches: &ArgMatches) -> Option<Vec<OsString>> {
    let values = |argument: &clap::Arg| matches.get_raw(argument.get_id().as_str());
    let inputs: Vec<OsString> = of.get_positionals().filter_map(values).flatten().map(OsStr::to_owned).collect();
    let takes_files = of.get_positionals().any(|argument| argument.get_id() == "paths");
    let are_listed = of.get_opts().any(|option| option.get_id() == "files_from" && values(option).is_some());
    let is_standard = takes_files && inputs.is_empty() && !are_listed || inputs.iter().any(|input| input == "-");
    (!is_standard).then_some(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_copied_into_memory_with_their_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let [folder, file] = ["logs", "text.gz"].map(|name| dir.path().join(name));
        fs::create_dir(&folder).expect("made");
        for path in [&file, &folder.join("a")] {
            fs::write(path, "12345").expect("written");
        }
        let inputs = vec![folder.clone().into_os_string(), file.clone().into_os_string()];
        let own = Own { folder: dir, inputs };
        assert!(own.in_memory(9).is_none(), "it has ten bytes");
        if Path::new(MEMORY).is_dir() {
            let (kept, copies) = own.in_memory(10).expect("copies");
            assert_eq!([&copies[0].0, &copies[1].0], [folder.as_os_str(), file.as_os_str()]);
            assert_eq!(fs::read_to_string(Path::new(&copies[0].1).join("a")).expect("a copy"), "12345");
            assert!(Path::new(&copies[1].1).ends_with("text.gz") && copies[1].1.to_str() > kept.path().to_str());
        }
        let own = Own { inputs: vec!["/dev/null".into()], ..own };
        assert!(own.in_memory(10).is_none(), "it is no file");
    }

    #[test]
    fn only_right_arguments_of_our_applications_are_taken() {
        let check = |words: &[&str]| inputs(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(check(&["word-count", "--top", "3", "file"]), Ok(vec!["file".into()]));
        assert!(check(&["make", "-j2"]).expect_err("unknown").contains("behind --"));
        assert!(check(&["scale"]).is_err());
        assert_eq!(check(&["tile-search"]), Ok(vec![]));
        for (words, said) in [
            (&["word-count", "--workers=3", "file"][..], "leave --workers of word-count out: it is what varies"),
            (&["word-count", "--stats", "file", "file"], "leave --stats of word-count out"),
            (&["word-count"], "word-count needs a file"),
            (&["word-count", "file", "-"], "word-count needs a file"),
            (&["word-count", "--help"], "gristmill word-count --help tells"),
            (&["word-count", "--tops", "3"], "word-count: unexpected argument '--tops'"),
        ] {
            let why = check(words).expect_err(said);
            assert!(why.starts_with(said) && why.lines().count() == 1, "{why}");
        }
    }
}
