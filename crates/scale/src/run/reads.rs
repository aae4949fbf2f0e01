//! The files that one of our own applications reads, and their copies in memory.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use gristmill::Input;
use gristmill::files::Source;
use gristmill_os::room::private_folder;
use tempfile::TempDir;

/// The files and folders that an application is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reads {
    /// As they were named.
    pub named: Vec<OsString>,
    /// Whether symbolic links below folders are followed.
    pub follow: bool,
}

/// The copies of what an application reads. They are removed when this is dropped.
pub struct Copies {
    _folder: TempDir,
    /// Each name, and the path of its copy.
    pub replaced: Vec<(OsString, OsString)>,
}

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

impl Reads {
    /// Returns the files to which all the names lead, found by the walk of a job. `None` if there are no names, if a
    /// name is that of no file or folder, as a pattern, or if something cannot be read.
    pub fn files(&self) -> Option<Vec<Source>> {
        self.files_of(&self.named)
    }

    fn files_of(&self, names: &[OsString]) -> Option<Vec<Source>> {
        let is_usual = |name: &OsString| fs::metadata(name).is_ok_and(|facts| facts.is_file() || facts.is_dir());
        if !names.iter().all(is_usual) {
            return None;
        }
        let sources = Input::paths(names).follow(self.follow).sources().ok()?.to_vec();
        // The content of a file of /proc is only in a copy without a name.
        sources.iter().all(|source| source.path == source.name).then_some(sources)
    }

    /// Copies what is read into a private folder in memory. `None` if there are more than `bytes_max`, no files
    /// ([`Reads::files`]), or no file system in memory.
    pub fn in_memory(&self, bytes_max: u64) -> Option<Copies> {
        let mut left = bytes_max;
        let folder = private_folder(Path::new(MEMORY)).ok()?;
        let (mut replaced, mut first) = (Vec::new(), HashMap::new());
        for (number, name) in self.named.iter().enumerate() {
            let sources = self.files_of(std::slice::from_ref(name))?;
            left = sources.iter().try_fold(left, |left, source| left.checked_sub(source.bytes))?;
            let named = Path::new(name);
            let copy = folder.path().join(number.to_string()).join(named.file_name().unwrap_or(OsStr::new("input")));
            for source in &sources {
                let below = source.path.strip_prefix(named).ok()?;
                let to = if below == Path::new("") { copy.clone() } else { copy.join(below) };
                copy_once(&source.path, to, &mut first).ok()?;
            }
            replaced.push((name.clone(), copy.into_os_string()));
        }
        (!replaced.is_empty()).then_some(Copies { _folder: folder, replaced })
    }
}

/// Copies a file, or links to its copy if there is one: the walk tells files apart by their identity.
fn copy_once(from: &Path, to: PathBuf, first: &mut HashMap<(u64, u64), PathBuf>) -> io::Result<()> {
    fs::create_dir_all(to.parent().expect("it lies in a folder of ours"))?;
    let facts = fs::metadata(from)?;
    match first.get(&(facts.dev(), facts.ino())) {
        Some(copy) => fs::hard_link(copy, to),
        None => {
            fs::copy(from, &to)?;
            first.insert((facts.dev(), facts.ino()), to);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the files below a folder, links to folders included, with their text.
    fn tree(folder: &Path) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            match path.is_dir() {
                true => all.extend(tree(&path).into_iter().map(|(below, text)| (format!("{name}/{below}"), text))),
                false => all.push((name, fs::read_to_string(&path).expect("text"))),
            }
        }
        all.sort();
        all
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    /// Hidden files, and a private file elsewhere to which a link led, once lay in memory, although the job reads
    /// neither.
    #[test]
    fn the_copy_has_what_the_job_reads_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("logs/deep")).expect("made");
        fs::create_dir(at("elsewhere")).expect("made");
        for (name, text) in [
            ("logs/a", "frog"),
            ("logs/.key", "secret"),
            ("logs/deep/b.log", "toad"),
            ("elsewhere/private", "letter"),
            ("text.log", "newt"),
        ] {
            fs::write(at(name), text).expect("written");
        }
        symlink(at("elsewhere"), at("logs/link")).expect("linked");
        symlink(at("nowhere"), at("dangling")).expect("linked");
        rustix::fs::mkfifoat(rustix::fs::CWD, at("logs/pipe"), rustix::fs::Mode::RWXU).expect("made");
        let named: Vec<OsString> = ["logs", "text.log"].map(|name| at(name).into_os_string()).to_vec();

        let plain = Reads { named: named.clone(), follow: false };
        assert!(plain.in_memory(11).is_none(), "it has twelve bytes");
        let copies = plain.in_memory(12).expect("copies");
        assert_eq!(copies.replaced.iter().map(|(from, _)| from.clone()).collect::<Vec<_>>(), named);
        let [logs, text] = [0, 1].map(|at| Path::new(&copies.replaced[at].1).to_owned());
        assert_eq!(tree(&logs), pairs(&[("a", "frog"), ("deep/b.log", "toad")]));
        assert!(text.ends_with("text.log") && fs::read_to_string(&text).expect("text") == "newt");

        let followed = Reads { named, follow: true };
        let copies = followed.in_memory(18).expect("copies");
        let all = [("a", "frog"), ("deep/b.log", "toad"), ("link/private", "letter")];
        assert_eq!(tree(Path::new(&copies.replaced[0].1)), pairs(&all));
        drop(copies);

        for odd in ["/dev/null", "/proc/self/stat", "/nowhere/*", at("dangling").to_str().expect("text")] {
            let reads = Reads { named: vec![odd.into()], follow: false };
            assert!(reads.in_memory(100).is_none() && reads.files().is_none(), "{odd}");
        }
    }

    /// Two names of one file are counted once by a job on a folder, so a copy must not make two files of them.
    #[test]
    fn names_of_one_file_stay_names_of_one_file() {
        let dir = tempfile::tempdir().expect("a folder");
        for (folder, name) in [("a", "x"), ("b", "y")] {
            fs::create_dir(dir.path().join(folder)).expect("made");
            let at = dir.path().join(folder).join(name);
            fs::write(dir.path().join("one"), "frog\n").expect("written");
            fs::hard_link(dir.path().join("one"), at).expect("linked");
        }
        let named: Vec<OsString> = ["a", "b"].map(|name| dir.path().join(name).into_os_string()).to_vec();
        let copies = Reads { named: named.clone(), follow: false }.in_memory(100).expect("copies");
        let copied: Vec<OsString> = copies.replaced.iter().map(|(_, copy)| copy.clone()).collect();
        let count = |named| Reads { named, follow: false }.files().expect("files").len();
        assert_eq!((count(named), count(copied)), (1, 1));
    }
}
