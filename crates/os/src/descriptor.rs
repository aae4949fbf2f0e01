//! File descriptors of processes, and those that another part of this process knows by number, such as an interpreter.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Opens the descriptor of a process, which no later process with the same number can be taken for.
pub(crate) fn of_process(pid: Pid) -> io::Result<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| match errno {
        Errno::NOSYS | Errno::PERM => io::Error::new(
            io::Error::from(errno).kind(),
            format!("pidfd_open: {errno}: this needs Linux 5.3 or later, and a container that permits it (seccomp)"),
        ),
        _ => errno.into(),
    })
}

/// Returns a new descriptor for the file that the number `of` stands for; programs that are executed do not get it.
///
/// # Errors
/// No file is open under the number, or the process has too many open files.
pub fn duplicate(of: i32) -> io::Result<OwnedFd> {
    // SAFETY: it takes no pointer. A number that is no open file is an error, and no file is changed or closed.
    let new = unsafe { libc::fcntl(of, libc::F_DUPFD_CLOEXEC, 0) };
    if new < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_number_without_a_file_is_an_error() {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        assert_ne!(duplicate(file.as_raw_fd()).expect("it is open").as_raw_fd(), file.as_raw_fd());
        assert_eq!(duplicate(-1).expect_err("no file").raw_os_error(), Some(libc::EBADF));
    }
}
