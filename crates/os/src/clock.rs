//! One time for all processes.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the kernel's monotonic clock.
///
/// It is the same clock in every process, is never set back, and is read without a system call.
///
/// ```
/// let start_ns = gristmill_os::clock::monotonic_ns();
/// assert!(gristmill_os::clock::monotonic_ns() >= start_ns);
/// ```
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both parts are never negative on this clock; 64 bits hold 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
