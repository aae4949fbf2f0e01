//! The kinds of causes that an account can show; `loss.rs` finds which one it is.

use gristmill_counters::sleep::Sleep;

use crate::diagnose::kernel_work::KernelWork;

/// The reason why more workers do not help, according to an account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// There is hardly any loss.
    None,
    /// Already the fewest workers keep as many processors busy as the most.
    Busy {
        /// The fewest workers.
        workers: u64,
        /// The processors that they keep busy, on average.
        processors: f64,
        /// The threads that wait for a processor besides, on average.
        queue: f64,
    },
    /// Hardly any processor time is lost, but the fewest workers have the help of other threads, so more workers gain
    /// less than their number.
    Helped {
        /// The fewest workers.
        workers: u64,
        /// The processors that they keep busy, on average.
        processors: f64,
    },
    /// Workers were absent: a serial stretch, parts of unequal size, or a setting that the program ignores.
    Serial,
    /// Workers slept, seldom, until another woke them: a barrier, parts of unequal size, or a serial stretch.
    Imbalance,
    /// Only one worker ran at a time, and all of them had their turn.
    Turns,
    /// Workers slept, often, until another woke them.
    Lock,
    /// Workers slept for a lock, seldom, but for long.
    Held,
    /// One thread was busy all the time, and the others slept until it woke them.
    Starved,
    /// Workers slept until another woke them, and for much of the time nobody computed. The others slept for this,
    /// most of them.
    Unfed(Option<Sleep>),
    /// Workers slept for short times, often.
    Polling,
    /// Each worker did as much as all the work of the fewest.
    Repeated,
    /// Workers slept for this reason.
    Blocked(Sleep),
    /// Workers slept, and samples do not show for what.
    Asleep,
    /// Workers had no processor.
    Crowded,
    /// The kernel handled page faults.
    Faults,
    /// The kernel handled waits and wake-ups.
    Switches,
    /// The kernel was busy for an unknown reason.
    Kernel,
    /// The kernel was busy with this.
    KernelWork(KernelWork),
    /// The kernel was busy with this object, or workers slept for it.
    Shared(Object),
    /// The same work took more processor time: memory, caches, shared cores, frequency, spinning.
    Slower,
    /// Several parts grew alike.
    Mixed,
}

/// An object of the kernel that workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The memory of a process with several threads.
    AddressSpace,
    /// Files and folders.
    Files,
    /// Pipes and sockets.
    Pipes,
}
