//! The text of files in `/proc` and `/sys`.

use std::fs::File;
use std::io::Read;

/// The text of the file with this path; `None` where there is none, or where it cannot be read.
pub type Files<'f> = &'f dyn Fn(&str) -> Option<String>;

/// More than any file of the kernel that is read here has.
const BYTES_MAX: u64 = 16 << 20;

/// The files of this machine.
pub fn here(path: &str) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The rest of the first line that begins with `name`, without colons and spaces around it.
pub fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Files as `path: text`, a line each.
    pub fn recorded(files: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        move |asked| files.iter().find(|(path, _)| path == asked).map(|(_, text)| text.clone())
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: AMD EPYC\nflags :\n";
        assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC"));
        assert_eq!(field(text, "model").as_deref(), Some("17"));
        assert_eq!(field(text, "flags").as_deref(), Some(""));
        assert_eq!(field(text, "cores"), None);
    }

    #[test]
    fn what_is_no_text_and_what_is_not_there_is_no_panic() {
        assert!(here("/proc/self/auxv").is_some());
        assert_eq!(here("/proc/self/none"), None);
        assert_eq!(here("/proc"), None);
    }
}
