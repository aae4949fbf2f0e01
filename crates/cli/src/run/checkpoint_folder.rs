//! The folder of `--checkpoint`, with a subfolder for each job.
//!
//! A folder that this command made is removed when the result is complete. A hidden file in it marks it until then,
//! also for a later run that continues. A folder that the user made stays.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_os::folder::Folder;

/// The file that marks a folder made by this command.
const MADE_HERE: &str = ".made-by-gristmill";

/// The folder while a command runs.
pub struct CheckpointFolder {
    dir: PathBuf,
}

impl CheckpointFolder {
    /// Makes the folder if it does not exist. A failure is reported by the job that finds no folder.
    pub fn begin(dir: &Path) -> CheckpointFolder {
        if dir.symlink_metadata().is_err() {
            let _ = Folder::private(dir).and_then(|folder| folder.open_file(MADE_HERE, true, false));
        }
        CheckpointFolder { dir: dir.to_owned() }
    }

    /// Returns the checkpoint folder of one of several jobs.
    pub fn of_job(&self, job: u32) -> PathBuf {
        self.dir.join(format!("job-{job}"))
    }
}

impl Drop for CheckpointFolder {
    /// Removes the folder if this command made it, unless it contains anything else.
    fn drop(&mut self) {
        let Ok(folder) = Folder::open_private(&self.dir) else { return };
        if folder.names().is_ok_and(|names| names == [MADE_HERE]) && folder.remove(MADE_HERE).is_ok() {
            let _ = fs::remove_dir(&self.dir);
        }
    }
}
