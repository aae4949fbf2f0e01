//! Files in `/proc` and `/sys`, read as text.

use std::fs::File;
use std::io::Read;
use std::sync::LazyLock;

/// Returns the text of the file with this path; `None` if it does not exist or cannot be read.
pub type Files<'f> = &'f dyn Fn(&str) -> Option<String>;

/// A limit above the size of any kernel file that is read here.
const BYTES_MAX: u64 = 16 << 20;

/// A variable of the environment that names sources to do without, separated by commas, as on a machine that refuses
/// them: files or folders of `/proc` and `/sys`, or `events` for those of the kernel.
const HIDDEN_BY: &str = "GRISTMILL_HIDE";

static HIDDEN: LazyLock<Vec<String>> = LazyLock::new(|| {
    std::env::var(HIDDEN_BY).unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
});

/// Returns true if this source is to be done without.
pub fn is_hidden(name: &str) -> bool {
    HIDDEN.iter().any(|hidden| hidden == name)
}

/// Reads a file of this machine.
pub fn here(path: &str) -> Option<String> {
    if !HIDDEN.is_empty() && path.split('/').any(is_hidden) {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the rest of the first line that begins with `name`, without the colon and surrounding spaces.
pub fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes files from pairs of path and text.
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
    fn binary_and_missing_files_cause_no_panic() {
        assert!(here("/proc/self/auxv").is_some());
        assert_eq!(here("/proc/self/none"), None);
        assert_eq!(here("/proc"), None);
    }
}
