//! Waking a coordinator that waits for several events at once.
//!
//! A worker sleeps on one futex. The coordinator also waits for deaths, which the kernel reports
//! through file descriptors. So it sleeps in [`Watch::wait`], and workers wake it through a [`Bell`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

/// A counter in the kernel (eventfd) that becomes readable when rung. Inherited by fork.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
}

impl Bell {
    /// A bell that has not been rung.
    ///
    /// # Errors
    ///
    /// When the process or the machine has no file descriptor left.
    pub fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { fd })
    }

    /// Makes the bell readable until it is drained. Never blocks.
    pub fn ring(&self) {
        match rustix::io::write(&self.fd, &1u64.to_ne_bytes()) {
            // AGAIN: the count is at its limit of 2^64 - 2, so the bell is readable anyway.
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => panic!("writing 8 bytes to an eventfd: {error}"),
        }
    }

    /// The count of rings since the last drain. Never blocks.
    pub fn drain(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            Err(Errno::AGAIN) => 0,
            Err(error) => panic!("reading 8 bytes from an eventfd: {error}"),
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sleeps until one of `fds` is readable, and returns the indices of all that are.
///
/// A descriptor whose other end is gone counts as readable. The result is empty after `timeout_ms` milliseconds or a
/// signal; `None` waits without a limit.
///
/// # Errors
///
/// When there are more `fds` than the process may have open, or the kernel has no memory.
///
/// ```
/// use std::os::fd::AsFd;
/// use gristmill_os::wake::{Bell, poll};
///
/// let (quiet, rung) = (Bell::new()?, Bell::new()?);
/// rung.ring();
/// assert_eq!(poll(&[quiet.as_fd(), rung.as_fd()], None)?, [1]);
/// assert_eq!(rung.drain(), 1);
/// assert_eq!(poll(&[rung.as_fd()], Some(0))?, []);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn poll(fds: &[BorrowedFd<'_>], timeout_ms: Option<u32>) -> io::Result<Vec<usize>> {
    let mut entries: Vec<PollFd<'_>> = fds.iter().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = timeout_ms.map(timespec);
    match rustix::event::poll(&mut entries, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = |(index, entry): (usize, &PollFd<'_>)| (!entry.revents().is_empty()).then_some(index);
    Ok(entries.iter().enumerate().filter_map(ready).collect())
}

/// Returns true if `fd` takes a write of 4 KiB, or gives an error at once; it waits for that for `timeout_ms`
/// milliseconds. A pipe whose reader does not read has no room.
///
/// # Errors
///
/// When the kernel has no memory.
///
/// ```
/// use std::io::Write;
///
/// let (_reader, mut pipe) = std::io::pipe()?;
/// let mut written = 0;
/// while gristmill_os::wake::has_room(&pipe, 0)? {
///     written += pipe.write(&[0; 4096])?;
/// }
/// assert!(written >= 4096);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn has_room(fd: &impl AsFd, timeout_ms: u32) -> io::Result<bool> {
    match rustix::event::poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&timespec(timeout_ms))) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn timespec(ms: u32) -> Timespec {
    Timespec { tv_sec: (ms / 1000).into(), tv_nsec: (ms % 1000 * 1_000_000).into() }
}

/// Descriptors that are waited for again and again (epoll): a wait costs the more the more of them are readable, not
/// the more there are.
///
/// ```
/// use gristmill_os::wake::{Bell, Watch};
///
/// let (watch, bells) = (Watch::new()?, [Bell::new()?, Bell::new()?]);
/// (0..2).try_for_each(|at| watch.add(&bells[at], at as u64))?;
/// bells[1].ring();
/// assert_eq!(watch.wait(None)?, [1]);
/// watch.remove(&bells[1])?;
/// assert_eq!(watch.wait(Some(0))?, []);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
}

/// The readable descriptors that one wait reports; the next wait reports others.
const READY_MAX: usize = 64;

impl Watch {
    /// Waits for nothing yet.
    ///
    /// # Errors
    ///
    /// When the process or the machine has no file descriptor left.
    pub fn new() -> io::Result<Watch> {
        Ok(Watch { fd: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Waits for `fd` from now on, under this number.
    ///
    /// Take it out again before it is closed: a process that was forked meanwhile has a copy, which keeps it here.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory to note it, or may note no more.
    pub fn add(&self, fd: &impl AsFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?)
    }

    /// Waits for `fd` no longer.
    ///
    /// # Errors
    ///
    /// When it is not waited for.
    pub fn remove(&self, fd: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// Sleeps until a descriptor is readable, and returns the numbers of some that are. The result is empty after
    /// `timeout_ms` milliseconds or a signal; `None` waits without a limit.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn wait(&self, timeout_ms: Option<u32>) -> io::Result<Vec<u64>> {
        let mut ready = Vec::with_capacity(READY_MAX);
        match epoll::wait(&self.fd, spare_capacity(&mut ready), timeout_ms.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(ready.iter().map(|event: &epoll::Event| event.data.u64()).collect()),
            Err(error) => Err(error.into()),
        }
    }
}
