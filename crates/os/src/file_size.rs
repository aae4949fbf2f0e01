//! The limit of a file's size, as an error instead of a signal.

use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};

/// Makes a write beyond the limit of file sizes an error.
///
/// While a guard exists, a write beyond the limit (`ulimit -f`) fails. Otherwise the kernel ends the process with
/// SIGXFSZ, without a message. A process that handles or ignores the signal keeps doing so. When the last guard is
/// dropped, the signal does again what it did.
///
/// ```
/// let _guard = gristmill_os::file_size::LimitIsAnError::new();
/// ```
#[derive(Debug)]
pub struct LimitIsAnError(());

/// The count of guards, and whether the first one found the default action.
static LIVING: Mutex<(usize, bool)> = Mutex::new((0, false));

impl LimitIsAnError {
    /// Takes effect until it is dropped.
    #[must_use]
    #[allow(clippy::new_without_default)] // It is made for what it does.
    pub fn new() -> LimitIsAnError {
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        if living.0 == 0 {
            living.1 = disposition() == libc::SIG_DFL;
            if living.1 {
                set_disposition(libc::SIG_IGN);
            }
        }
        living.0 += 1;
        LimitIsAnError(())
    }
}

impl Drop for LimitIsAnError {
    fn drop(&mut self) {
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        living.0 -= 1;
        // Somebody may have set a handler meanwhile.
        if living.0 == 0 && living.1 && disposition() == libc::SIG_IGN {
            set_disposition(libc::SIG_DFL);
        }
    }
}

fn disposition() -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: null changes nothing, and the pointer is valid; all zeros is a valid value, should the call fail.
    unsafe {
        libc::sigaction(libc::SIGXFSZ, null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// Ignores the signal, or not.
fn set_disposition(disposition: libc::sighandler_t) {
    // SAFETY: all zeros is a valid value: no flags, and no signal blocked.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = disposition;
    // SAFETY: neither disposition runs code of ours; the pointer is valid, and nobody wants the old one.
    unsafe { libc::sigaction(libc::SIGXFSZ, &action, null_mut()) };
}

/// The limit of file sizes of this process in bytes, if there is one.
pub fn limit_bytes() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}
