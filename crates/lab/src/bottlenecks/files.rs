//! The files of the paper: lines of one letter, as many as there is room for.

use std::fs::File;
use std::path::Path;

use gristmill::Error;
use gristmill_cli::Failure;
use gristmill_os::machine::memory_available_bytes;
use gristmill_os::room::{free_bytes_of, no_temporary, private_folder, temporary_folder};
use gristmill_report::messages::tell;

use crate::generate::lines_of_one_letter;

/// Files of equal size, as the paper names them: 10000F100000C are 10,000 files of 100,000 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub files: u64,
    pub characters: u64,
}

/// The files that lie in a temporary folder now. They are removed with this value.
pub struct Files {
    folder: tempfile::TempDir,
    /// The most bytes of all files, and the reason for it.
    limit_bytes: u64,
    limit: &'static str,
    made: Option<(Size, u64)>,
}

impl Size {
    /// Returns the number of these files that fit into so many bytes; at least one.
    fn within(self, limit_bytes: u64) -> u64 {
        self.files.min(limit_bytes / self.characters).max(1)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}F{}C", self.files, self.characters)
    }
}

impl Files {
    /// Makes an empty folder. Without a limit, half of the free disk and a third of the available memory is one: files
    /// that do not stay in the page cache would measure the disk.
    pub fn new(limit_bytes: Option<u64>) -> Result<Files, Failure> {
        let failed = |what| move |source| Failure::from(Error::System { what, source });
        let made = private_folder(&temporary_folder()).map_err(no_temporary);
        let folder = made.map_err(failed("making the input"))?;
        let disk = File::open(folder.path()).and_then(free_bytes_of).map_err(failed("asking for the free disk"))?;
        let memory = memory_available_bytes().map_err(failed("asking for the available memory"))?;
        let (limit_bytes, limit) = match limit_bytes {
            Some(limit_bytes) => (limit_bytes, "--data-mb"),
            None if disk / 2 < memory / 3 => (disk / 2, "half of the free disk"),
            None => (memory / 3, "a third of the available memory"),
        };
        Ok(Files { folder, limit_bytes, limit, made: None })
    }

    /// Makes these files and removes others. Returns their folder.
    pub fn make(&mut self, size: Size) -> Result<std::path::PathBuf, Failure> {
        let path = self.folder.path().join("files");
        if self.made.is_some_and(|(made, _)| made == size) {
            return Ok(path);
        }
        self.clear(&path)?;
        let files = size.within(self.limit_bytes);
        tell(format_args!("making {files} files of {} characters", size.characters));
        lines_of_one_letter(path.clone(), files, size.characters as usize)?;
        // The kernel would write them during the measurement.
        rustix::fs::sync();
        self.made = Some((size, files));
        Ok(path)
    }

    fn clear(&mut self, path: &Path) -> Result<(), Failure> {
        if self.made.take().is_some() {
            std::fs::remove_dir_all(path).map_err(|source| Failure::output(path, source))?;
        }
        Ok(())
    }

    /// Returns a sentence about the files, which says why they are fewer than those of the paper, if they are.
    pub fn told(&self, paper: Size) -> String {
        let (made, files) = self.made.expect("files were made");
        let limit = format!("{} ({} MB)", self.limit, self.limit_bytes / 1_000_000);
        match files == made.files {
            true if made == paper => format!("{paper}, as in the paper."),
            false if made == paper => {
                format!("{files} of the {} files of {paper}: more do not fit into {limit}.", paper.files)
            }
            whole => {
                let further = if whole { String::new() } else { format!(" and {limit}") };
                format!("{files}F{}C in place of {paper}, because of --quick{further}.", made.characters)
            }
        }
    }

    /// The number of files.
    pub fn count(&self) -> u64 {
        self.made.map_or(0, |(_, files)| files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_are_made_as_fit_and_the_page_says_so() {
        let mut files = Files::new(Some(4_500)).expect("a folder");
        let paper = Size { files: 1000, characters: 1000 };
        let folder = files.make(paper).expect("made");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 4);
        assert_eq!(files.told(paper), "4 of the 1000 files of 1000F1000C: more do not fit into --data-mb (0 MB).");
        files.make(Size { files: 5, ..paper }).expect("made");
        assert_eq!(files.told(paper), "4F1000C in place of 1000F1000C, because of --quick and --data-mb (0 MB).");
        files.make(Size { files: 2, characters: 10 }).expect("made");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 2);
        assert_eq!(files.told(paper), "2F10C in place of 1000F1000C, because of --quick.");
        assert_eq!(std::fs::read(folder.join("00001.txt")).expect("read"), b"aaaaaaaaaa");
    }
}
