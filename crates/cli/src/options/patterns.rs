//! File patterns such as `logs/**/*.txt`, and the search for paths that match.
//!
//! As in a shell, `*` matches any part of a name, `?` one character, `[a-z]` and `[!a-z]` one of a set. A name `**`
//! matches any number of directories, including none. A name that begins with a dot is only matched by a pattern that
//! does. Names are bytes: each stray byte of a name that is not UTF-8 counts as a character.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns true if a path contains a special character of patterns.
pub fn is_pattern(path: &Path) -> bool {
    has_letters(path.as_os_str().as_bytes())
}

/// Returns the matching paths without directories, sorted by name. A directory that cannot be read is included, so
/// that opening it gives an error.
pub fn matches(pattern: &Path) -> Vec<PathBuf> {
    let bytes = pattern.as_os_str().as_bytes();
    let mut names: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    if names.last() == Some(&&b"**"[..]) {
        names.push(b"*"); // As in a shell.
    }
    let mut search = Search { found: Vec::new(), seen: HashSet::new() };
    search.expand(Path::new(if bytes.starts_with(b"/") { "/" } else { "" }), &names);
    search.found
}

fn has_letters(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[".contains(byte))
}

/// The state of a search.
struct Search {
    found: Vec<PathBuf>,
    /// Folders, by device and inode, with the number of remaining names of the pattern. Loops of links, or several
    /// `**`, lead to the same search again.
    seen: HashSet<(u64, u64, usize)>,
}

impl Search {
    /// Adds the entries below `directory` that match these names of a pattern, one level each.
    fn expand(&mut self, directory: &Path, names: &[&[u8]]) {
        let Some((name, rest)) = names.split_first() else {
            if directory.symlink_metadata().is_ok() && !directory.is_dir() {
                self.found.push(directory.to_owned());
            }
            return;
        };
        let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        if let Ok(facts) = here.metadata()
            && !self.seen.insert((facts.dev(), facts.ino(), names.len()))
        {
            return;
        }
        if !has_letters(name) {
            return self.expand(&directory.join(OsStr::from_bytes(name)), rest);
        }
        if *name == b"**" {
            // No directory, or one more of any name.
            self.expand(directory, rest);
            for (path, is_directory) in entries(directory, b"*", &mut self.found) {
                if is_directory {
                    self.expand(&path, names);
                }
            }
            return;
        }
        for (path, is_directory) in entries(directory, name, &mut self.found) {
            if rest.is_empty() || is_directory || path.is_dir() {
                self.expand(&path, rest);
            }
        }
    }
}

/// Returns the entries of a directory that match a name, sorted by name, and whether each is a directory and not a
/// link to one.
fn entries(directory: &Path, name: &[u8], found: &mut Vec<PathBuf>) -> Vec<(PathBuf, bool)> {
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = match fs::read_dir(here) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(_) => {
            found.push(here.to_owned());
            return Vec::new();
        }
    };
    let is_match = |entry: &fs::DirEntry| is_match(name, entry.file_name().as_bytes());
    let entries = entries.filter_map(Result::ok).filter(is_match);
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut entries: Vec<_> = entries.map(|entry| (directory.join(entry.file_name()), is_directory(&entry))).collect();
    entries.sort();
    entries
}

/// Returns true if a whole name matches a pattern.
pub fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    // The point to retry from if the text after the last star does not match: the star then takes one character more.
    let (mut pattern, mut name, mut retry) = (pattern, name, None);
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            retry = Some((pattern, name));
            continue;
        }
        match (one(pattern, name), retry) {
            (Some((rest, left)), _) => (pattern, name) = (rest, left),
            _ if pattern.is_empty() && name.is_empty() => return true,
            (None, Some((after, from))) if !from.is_empty() => {
                let from = &from[character(from)..];
                (pattern, name, retry) = (after, from, Some((after, from)));
            }
            _ => return false,
        }
    }
}

/// Matches one character with the start of the pattern, which is not a star, and returns the rest of both.
fn one<'a>(pattern: &'a [u8], name: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (first, left) = name.split_at_checked(character(name)).filter(|(first, _)| !first.is_empty())?;
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some((rest, left)),
        [b'[', set @ ..] => match one_of(set, first) {
            Some((true, rest)) => Some((rest, left)),
            Some((false, _)) => None,
            // A bracket that is never closed stands for itself.
            None => (first == b"[").then_some((set, left)),
        },
        _ => Some((pattern.strip_prefix(first)?, left)),
    }
}

/// Returns whether an opened set contains a character, and the text after the set; `None` if the set is not closed.
fn one_of<'a>(set: &'a [u8], wanted: &[u8]) -> Option<(bool, &'a [u8])> {
    let (inverts, mut set) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let (mut has, mut is_first) = (false, true);
    loop {
        let low = &set[..character(set)];
        match low {
            [] => return None,
            b"]" if !is_first => return Some((has != inverts, &set[1..])),
            _ => {}
        }
        is_first = false;
        set = &set[low.len()..];
        has |= match set {
            [b'-', rest @ ..] if !rest.is_empty() && rest[0] != b']' => {
                let high = &rest[..character(rest)];
                set = &rest[high.len()..];
                // UTF-8 sorts like the characters it encodes.
                (low..=high).contains(&wanted)
            }
            _ => low == wanted,
        };
    }
}

/// Returns the length of the first character: of a UTF-8 sequence, or of one stray byte; 0 at the end.
fn character(name: &[u8]) -> usize {
    let length = match name.first() {
        None => return 0,
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) => 1,
    };
    if name.get(..length).is_some_and(|bytes| str::from_utf8(bytes).is_ok()) { length } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let cases: [(&str, &[u8], bool); 27] = [
            ("*", b"a", true),
            ("*", b".a", false),
            (".*", b".a", true),
            ("?", b".", false),
            ("*.txt", b"a.txt", true),
            ("*.txt", b"a.txt.gz", false),
            ("*.txt", b"\xff.txt", true),
            ("a*b*c", b"aXbYbZc", true),
            ("a*b*c", b"aXbYbZ", false),
            ("a**c", b"abc", true),
            ("?", "é".as_bytes(), true),
            ("??", "é".as_bytes(), false),
            ("?", b"\xff", true),
            ("[a-c]", b"b", true),
            ("[!a-c]", b"b", false),
            ("[^a-c]", b"d", true),
            ("[]]", b"]", true),
            ("[a-]", b"-", true),
            ("[-a]", b"-", true),
            ("[à-ü]", "é".as_bytes(), true),
            ("[à-ü]*", "zé".as_bytes(), false),
            ("[", b"[", true),
            ("[a", b"[a", true),
            ("[a", b"a", false),
            ("x[0-9][0-9]", b"x42", true),
            ("", b"a", false),
            ("*a", b"aaab", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(is_match(pattern.as_bytes(), name), expected, "{pattern} {name:?}");
        }
    }
}
