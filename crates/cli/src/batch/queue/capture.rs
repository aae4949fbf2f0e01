//! The output of each program, kept apart from that of the others.
//!
//! Without `--output`, it goes to files without a name, and is printed on this process's own streams when the program has ended, whole.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use gristmill_os::room::{named, temporary_folder};
use gristmill_os::wake::has_room;
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
    pub fn begin(output: Option<&Path>, (number, job): (usize, &Job), key: &str, attempt: u32) -> io::Result<Capture> {
        let Some(output) = output else {
            let file = || tempfile::tempfile_in(temporary_folder()).map_err(|error| about(&temporary_folder(), error));
            return Ok(Capture { stdout: file()?, stderr: file()?, folder: None });
        };
        let begin = || {
            let folder = folder(output, &folder_name(number, &job.name), key)?;
            if attempt == 1 {
                remove_attempts(&folder)?;
            }
            let suffix = if attempt > 1 { format!(".{attempt}") } else { String::new() };
            let [stdout, stderr] =
                ["stdout", "stderr"].map(|name| File::create(folder.join(format!("{name}{suffix}"))));
            Ok(Capture { stdout: stdout?, stderr: stderr?, folder: Some(folder) })
        };
        begin().map_err(|error| about(output, error))
    }

    /// Returns the program's output, ready to be printed: standard output as such, or on standard error with `aside`, and the rest on standard error. Output that is kept
    /// in a folder is not printed.
    pub fn written(self, aside: bool) -> io::Result<Vec<Written>> {
        let files = if self.folder.is_none() { vec![(self.stdout, aside), (self.stderr, true)] } else { Vec::new() };
        let mut all = Vec::new();
        for (mut file, is_error) in files {
            if file.metadata()?.len() > 0 {
                // The program shares the position in the file.
                file.rewind()?;
                all.push(Written { from: Box::new(file), is_error });
            }
        }
        Ok(all)
    }
}

/// The bytes that a pipe takes without waiting once it takes any.
const PIECE_BYTES: usize = 4096;
/// The pieces that are printed without looking for anything else.
const PIECES: usize = 256;

/// The milliseconds in which a reader that reads makes room.
const ROOM_MS: u32 = 1;

/// How far something was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    All,
    /// There is more, and may be room for it.
    Part,
    NoRoom,
}

/// Text that is being printed: a program's output, or a line about it. It is printed in pieces, and only while the stream has room, so that the queue can go on with its
/// other work while nobody reads.
pub struct Written {
    from: Box<dyn Read>,
    is_error: bool,
}

impl Written {
    /// A text for standard output.
    pub fn text(text: String) -> Written {
        Written { from: Box::new(Cursor::new(text)), is_error: false }
    }

    /// Prints some of it.
    pub fn print_some(&mut self) -> io::Result<Printed> {
        let printed = if self.is_error {
            io::stderr().as_fd().try_clone_to_owned().map(File::from).and_then(|to| self.print_to(to))
        } else {
            standard_output().and_then(|to| self.print_to(to))
        };
        // Who listens on standard error may be gone.
        if self.is_error { Ok(printed.unwrap_or(Printed::All)) } else { printed }
    }

    fn print_to(&mut self, mut to: File) -> io::Result<Printed> {
        if to.metadata()?.is_file() {
            io::copy(&mut self.from, &mut to)?;
            return Ok(Printed::All);
        }
        let mut piece = [0; PIECE_BYTES];
        for _ in 0..PIECES {
            if !has_room(&to, ROOM_MS)? {
                return Ok(Printed::NoRoom);
            }
            match self.from.read(&mut piece)? {
                0 => return Ok(Printed::All),
                count => to.write_all(&piece[..count])?,
            }
        }
        Ok(Printed::Part)
    }
}

/// Says which folder an error is about. One of the kernel's that says something else, such as that too many files are open, stays as it is.
fn about(folder: &Path, error: io::Error) -> io::Error {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let is_of_folder =
        [AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind());
    // An unnamed file's error has the kernel's inside.
    let inner = error.get_ref().and_then(|inner| inner.source()?.downcast_ref::<io::Error>());
    match error.raw_os_error().or_else(|| inner?.raw_os_error()) {
        Some(code) if !is_of_folder => io::Error::from_raw_os_error(code),
        _ => io::Error::other(format!("its output cannot be kept in {}: {error}", named(folder))),
    }
}

/// The file in a job's folder that has the job's key.
const KEY: &str = ".job";

/// Returns the folder of a job, and makes it if there is none. One that another job has made, at the same place of an earlier list, is left alone: then the next free
/// name is taken.
fn folder(output: &Path, name: &str, key: &str) -> io::Result<PathBuf> {
    let mut folder = output.join(name);
    for number in 2.. {
        match fs::read_to_string(folder.join(KEY)) {
            Ok(owner) if owner.trim_end() != key => folder = output.join(format!("{name}~{number}")),
            Ok(_) => break,
            Err(_) => {
                fs::create_dir_all(&folder)?;
                fs::write(folder.join(KEY), format!("{key}\n"))?;
                break;
            }
        }
    }
    Ok(folder)
}

/// Removes the files of further attempts that an earlier queue has made.
fn remove_attempts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let attempt = name.to_str().and_then(|name| name.strip_prefix("stdout.").or(name.strip_prefix("stderr.")));
        if attempt.is_some_and(|attempt| attempt.parse::<u32>().is_ok()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
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

    fn begun(output: &Path, line: &str, attempt: u32) -> PathBuf {
        let job = Job::shell(line);
        let key = &gristmill_queue::keys(std::slice::from_ref(&job))[0];
        let capture = Capture::begin(Some(output), (0, &job), key, attempt).expect("files");
        capture.folder.expect("a folder")
    }

    #[test]
    fn a_job_keeps_its_folder_whatever_is_at_its_place_in_a_later_list() {
        let output = tempfile::tempdir().expect("a folder");
        let long = "x".repeat(NAME_LETTERS);
        let (one, other) = (format!("{long} 1"), format!("{long} 2"));
        let first = begun(output.path(), &one, 1);
        fs::write(first.join("stdout"), "kept").expect("it is written");
        assert_eq!(begun(output.path(), &other, 1), output.path().join(format!("0001-{long}~2")));
        assert_eq!(fs::read_to_string(first.join("stdout")).expect("it is there"), "kept");
        assert_eq!(begun(output.path(), &one, 2), first);
    }

    #[test]
    fn a_first_attempt_removes_the_files_of_earlier_ones() {
        let output = tempfile::tempdir().expect("a folder");
        (1..=3).for_each(|attempt| drop(begun(output.path(), "a", attempt)));
        let folder = begun(output.path(), "a", 1);
        let mut names: Vec<_> = fs::read_dir(&folder).expect("it is there").flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, [KEY, "stderr", "stdout"]);
    }

    #[test]
    fn folders_have_the_number_and_the_name_of_a_job() {
        assert_eq!(folder_name(0, "xz -k a/b.txt"), "0001-xz_-k_a_b.txt");
        assert_eq!(folder_name(41, "../.."), "0042-.._..");
        assert_eq!(folder_name(9999, &"x".repeat(99)).len(), "10000-".len() + 40);
    }
}
