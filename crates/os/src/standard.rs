//! Standard output, and the standard streams that were closed when this process began.
//!
//! Before `main`, Rust's runtime replaces a closed stream by `/dev/null`, where writes are lost without an error. So
//! the program loader calls a function of this module first.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::Errno;

/// A bit for each of the three streams that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Called once by the loader, before the runtime starts: it must not need the runtime.
extern "C" fn look() {
    for fd in 0..3 {
        // SAFETY: F_GETFD reads a flag of a descriptor, or says that there is none; it touches no memory of ours.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

// SAFETY: the section is a list of functions that the loader calls one after the other, in the only thread that there
// is, with arguments that the C calling convention lets `look` ignore.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// True when descriptor 0, 1 or 2 was closed when this process began.
pub fn was_closed(fd: u8) -> bool {
    CLOSED.load(Ordering::Relaxed) >> fd & 1 == 1
}

/// Returns unbuffered standard output, or an error if it was closed.
pub fn standard_output() -> io::Result<File> {
    if was_closed(1) {
        return Err(Errno::BADF.into());
    }
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Prints bytes as they are. A reader that closes the pipe early is not a failure.
pub fn print(bytes: &[u8]) -> io::Result<()> {
    match standard_output().and_then(|mut to| to.write_all(bytes)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
