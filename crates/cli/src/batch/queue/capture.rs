//! The output of each program, kept apart from that of the others.
//!
//! Without `--output`, it goes to files without a name, and is copied to this process's own streams when the program has ended, whole.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use gristmill_queue::Job;

use crate::terminal::standard_output::standard_output;

/// The files that a program writes to.
pub struct Capture {
    pub stdout: File,
    pub stderr: File,
    /// Their folder, if they have names.
    pub folder: Option<PathBuf>,
}

/// The longest part of a job's name in that of its folder.
const NAME_LETTERS: usize = 40;

impl Capture {
    /// Begins the files of an attempt. The first one's are `stdout` and `stderr`, later ones have the number of the attempt.
    pub fn begin(output: Option<&Path>, (number, job): (usize, &Job), attempt: u32) -> io::Result<Capture> {
        let Some(output) = output else {
            return Ok(Capture { stdout: tempfile::tempfile()?, stderr: tempfile::tempfile()?, folder: None });
        };
        let folder = output.join(folder_name(number, &job.name));
        fs::create_dir_all(&folder)?;
        let suffix = if attempt > 1 { format!(".{attempt}") } else { String::new() };
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| File::create(folder.join(format!("{name}{suffix}"))));
        Ok(Capture { stdout: stdout?, stderr: stderr?, folder: Some(folder) })
    }

    /// Copies what was written to the own streams; with `aside`, all to standard error.
    pub fn hand_on(&mut self, aside: bool) -> io::Result<()> {
        if self.folder.is_some() {
            return Ok(());
        }
        for (from, is_error) in [(&mut self.stdout, aside), (&mut self.stderr, true)] {
            // The program shares the position in the file.
            from.rewind()?;
            match is_error {
                _ if from.metadata()?.len() == 0 => {}
                // Who listens on standard error may be gone.
                true => drop(io::copy(from, &mut io::stderr())),
                false => drop(io::copy(from, &mut standard_output()?)?),
            }
        }
        Ok(())
    }
}

/// Returns the name of a job's folder: its number, and its name as far as that suits a file.
fn folder_name(number: usize, name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let plain: String =
        name.chars().take(NAME_LETTERS).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    format!("{:04}-{plain}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_number_and_the_name_of_a_job() {
        assert_eq!(folder_name(0, "xz -k a/b.txt"), "0001-xz_-k_a_b.txt");
        assert_eq!(folder_name(41, "../.."), "0042-.._..");
        assert_eq!(folder_name(9999, &"x".repeat(99)).len(), "10000-".len() + 40);
    }
}
