//! The name that was probably meant, for a path that leads nowhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The number of names of a folder that are compared.
const NAMES_MAX: usize = 10_000;

/// Returns the path with its first missing name replaced by the nearest one of the same folder, if one is near.
pub fn nearest(path: &Path) -> Option<PathBuf> {
    let is_missing =
        |path: &&Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    // Ancestors begin with the longest; that of a bare name is empty, and stands for the current folder.
    let is_named = |path: &&Path| !path.as_os_str().is_empty();
    let missing = path.ancestors().take_while(is_named).take_while(is_missing).last()?;
    let wanted = missing.file_name()?.to_string_lossy().into_owned();
    let folder = missing.parent()?;
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = fs::read_dir(listed).ok()?.flatten().take(NAMES_MAX).map(|entry| entry.file_name());
    let near = names.filter_map(|name| Some((distance(&wanted, &name.to_string_lossy())?, name)));
    let rest = path.strip_prefix(missing).ok()?;
    near.min().map(|(_, name)| match rest.as_os_str().is_empty() {
        true => folder.join(name),
        false => folder.join(name).join(rest),
    })
}

/// Returns the number of letters that differ, if they are few for the length of the name. Capitals and small letters
/// differ less.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let [wanted, name] = [wanted, name].map(str::to_lowercase);
    let most = (wanted.chars().count() / 3).min(2);
    Some(strsim::osa_distance(&wanted, &name)).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("logs")).expect("made");
        for name in ["words.txt", "ab", "logs/monday"] {
            fs::write(path(name), "").expect("written");
        }
        for (asked, expected) in [
            ("wrods.txt", Some("words.txt")),
            ("Words.TXT", Some("words.txt")),
            ("word.text", Some("words.txt")),
            ("log/monday", Some("logs/monday")),
            ("logs/munday", Some("logs/monday")),
            ("ac", None),
            ("AB", Some("ab")),
            ("something", None),
            ("words.txt", None),
        ] {
            assert_eq!(nearest(&path(asked)), expected.map(path), "{asked}");
        }
    }
}
