//! The fate of memory between two uses.

/// The fate of a page's memory between two uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The memory is kept and written again.
    Keep,
    /// The memory goes back to the kernel; the next use faults in fresh, zeroed memory.
    Discard,
}
