//! The output of each program, kept apart from that of the others.
//!
//! With `--output`, it goes to files in a folder of the job. Folder and files are this user's alone, and nothing that
//! somebody else has put there is followed, opened or written over. Without, it goes to files that have no name, and
//! is printed on this process's own streams.

use std::fs::{File, Permissions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::queue::BatchJob;
use gristmill_os::folder::Folder;
use gristmill_os::room::{named, temporary_folder};
use gristmill_os::wake::Watch;

use super::ready::{Ready, STREAMS};
use super::stream::Stream;

/// The output of a running program.
pub struct Capture {
    job: usize,
    /// Standard output and standard error.
    streams: [Stream; STREAMS],
    /// The folder of their files, if these have names.
    pub folder: Option<PathBuf>,
    /// The reason why some of it could not be kept.
    problem: Option<String>,
}

/// The longest part of a job's name in that of its folder.
const NAME_LETTERS: usize = 40;

impl Capture {
    /// Begins the streams of an attempt, and returns the ends that the program writes to. The first attempt's files
    /// are `stdout` and `stderr`, those of later ones have its number.
    pub fn begin(
        output: Option<&Path>,
        (number, job): (usize, &BatchJob),
        key: &str,
        attempt: u32,
    ) -> io::Result<(Capture, [PipeWriter; STREAMS])> {
        let (files, folder) = match output {
            None => ([None, None], None),
            Some(output) => {
                let begun = files(output, &folder_name(number, &job.name), key, attempt);
                let (files, folder) = begun.map_err(|error| about(output, error))?;
                (files.map(Some), Some(folder))
            }
        };
        let [out, error] = files;
        let ((out, out_writer), (error, error_writer)) = (Stream::begin(out)?, Stream::begin(error)?);
        let capture = Capture { job: number, streams: [out, error], folder, problem: None };
        Ok((capture, [out_writer, error_writer]))
    }

    /// Standard output and standard error.
    pub fn streams(&self) -> &[Stream; STREAMS] {
        &self.streams
    }

    /// Waits for what the program writes from now on.
    pub fn watch(&self, watch: &Watch) -> io::Result<()> {
        for (stream, pipe) in self.streams.iter().map(Stream::pipe).enumerate() {
            let number = Ready::Stream { job: self.job, stream }.number();
            pipe.map_or(Ok(()), |pipe| watch.add(pipe, number))?;
        }
        Ok(())
    }

    /// Moves the content of a readable pipe to its file. Returns false if the file takes no more; the pipe is closed
    /// then.
    pub fn drain(&mut self, stream: usize, watch: &Watch) -> io::Result<bool> {
        match self.streams[stream].drain() {
            Ok(0) => self.close(stream, watch)?,
            Ok(_) => {}
            Err(error) => {
                self.note_problem(&error);
                self.close(stream, watch)?;
            }
        }
        Ok(self.problem.is_none())
    }

    /// Keeps what an ended program has left in its pipes, and closes them. Returns the reason why some of its output
    /// is not kept, if there is one.
    pub fn finish(&mut self, watch: &Watch) -> io::Result<Option<String>> {
        for stream in 0..STREAMS {
            if let Err(error) = self.streams[stream].drain() {
                self.note_problem(&error);
            }
            self.close(stream, watch)?;
        }
        Ok(self.problem.take())
    }

    /// The files of the streams to which something was written.
    pub fn into_files(self) -> [Option<File>; STREAMS] {
        self.streams.map(|stream| stream.into_file())
    }

    /// The guard has a copy of the pipe, so closing it would not end the watch.
    fn close(&mut self, stream: usize, watch: &Watch) -> io::Result<()> {
        self.streams[stream].pipe().map_or(Ok(()), |pipe| watch.remove(pipe))?;
        self.streams[stream].close();
        Ok(())
    }

    fn note_problem(&mut self, error: &io::Error) {
        let folder = self.folder.clone().unwrap_or_else(temporary_folder);
        let next = match error.kind() {
            io::ErrorKind::StorageFull => "; make room there",
            io::ErrorKind::QuotaExceeded => "; make room there, or have the quota raised",
            io::ErrorKind::FileTooLarge => "; raise the limit of file sizes (ulimit -f)",
            _ => "",
        };
        self.problem.get_or_insert_with(|| format!("{}{next}", not_kept(&folder, error)));
    }
}

fn not_kept(folder: &Path, error: &io::Error) -> String {
    format!("its output cannot be kept in {}: {error}", named(folder))
}

/// Says which folder an error is about. One of the kernel's that says something else, such as that too many files are
/// open, stays as it is.
fn about(folder: &Path, error: io::Error) -> io::Error {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let is_of_folder =
        [AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind());
    // An unnamed file's error has the kernel's inside.
    let inner = error.get_ref().and_then(|inner| inner.source()?.downcast_ref::<io::Error>());
    match error.raw_os_error().or_else(|| inner?.raw_os_error()) {
        Some(code) if !is_of_folder => io::Error::from_raw_os_error(code),
        _ => io::Error::other(not_kept(folder, &error)),
    }
}

/// The file in a job's folder that has the job's key.
const KEY: &str = ".job";

/// Makes the files of an attempt, and returns them with their folder.
fn files(output: &Path, name: &str, key: &str, attempt: u32) -> io::Result<([File; STREAMS], PathBuf)> {
    let (folder, path) = folder(output, name, key)?;
    if attempt == 1 {
        remove_attempts(&folder)?;
    }
    let suffix = if attempt > 1 { format!(".{attempt}") } else { String::new() };
    let begun = |name: &str| {
        let file = folder.open_file(format!("{name}{suffix}"), true, false)?;
        // It may be that of an earlier queue.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len(0)?;
        Ok::<_, io::Error>(file)
    };
    Ok(([begun("stdout")?, begun("stderr")?], path))
}

/// Returns the folder of a job, and makes it if there is none. One that another job has made, at the same place of an
/// earlier list, is left alone: then the next free name is taken.
fn folder(output: &Path, name: &str, key: &str) -> io::Result<(Folder, PathBuf)> {
    let mut path = output.join(name);
    for number in 2_u64.. {
        let folder = Folder::private(&path).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None => io::Error::other(format!("{}: {error}", path.display())),
        })?;
        let mut owner = String::new();
        let mut file = folder.open_file(KEY, true, false)?;
        file.read_to_string(&mut owner)?;
        match owner.trim_end() {
            "" => file.write_all(format!("{key}\n").as_bytes())?,
            owner if owner == key => {}
            _ => {
                path = output.join(format!("{name}~{number}"));
                continue;
            }
        }
        return Ok((folder, path));
    }
    unreachable!("there are fewer folders than numbers")
}

/// Removes the files of further attempts that an earlier queue has made.
fn remove_attempts(folder: &Folder) -> io::Result<()> {
    for name in folder.names()? {
        let attempt = name.to_str().and_then(|name| name.strip_prefix("stdout.").or(name.strip_prefix("stderr.")));
        if attempt.is_some_and(|attempt| attempt.parse::<u32>().is_ok()) {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// Returns the name of a job's folder: its number, and the part of its name that may stand in a file name.
fn folder_name(number: usize, name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let plain: String =
        name.chars().take(NAME_LETTERS).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    format!("{:04}-{plain}", number + 1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::queue::Shell;

    fn begun(output: &Path, line: &str, attempt: u32) -> PathBuf {
        let job = Shell::default().job(line.into());
        let key = &crate::queue::Keys::default().of(&job);
        let (capture, _) = Capture::begin(Some(output), (0, &job), key, attempt).expect("files");
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
