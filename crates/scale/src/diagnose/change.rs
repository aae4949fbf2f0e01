//! Changes of the circumstances of a run.

use std::fmt;

/// A change of the circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The most workers on half of their processors.
    HalfProcessors,
    /// The fewest workers, beside a process for each missing worker that computes without memory.
    BesideComputing,
    /// The fewest workers, beside a process for each missing worker that reads memory.
    BesideReading,
    /// The allocator asks for huge pages.
    HugePages,
    /// The kernel gives no huge pages.
    SmallPages,
    /// Another allocator is loaded.
    OtherAllocator,
    /// Workers of the engine are threads of one process.
    Threads,
    /// The engine touches all its pages before it begins.
    PreparedPages,
    /// The input lies in memory.
    InputInMemory,
}

impl Change {
    /// All changes, in the order in which they are tried.
    pub const ALL: [Change; 9] = [
        Change::HalfProcessors,
        Change::BesideComputing,
        Change::BesideReading,
        Change::HugePages,
        Change::SmallPages,
        Change::OtherAllocator,
        Change::InputInMemory,
        Change::Threads,
        Change::PreparedPages,
    ];

    /// Returns whether it applies to the fewest workers and to the most.
    pub fn applies(self) -> [bool; 2] {
        match self {
            Change::HalfProcessors => [false, true],
            Change::BesideComputing | Change::BesideReading => [true, false],
            Change::HugePages
            | Change::SmallPages
            | Change::OtherAllocator
            | Change::Threads
            | Change::PreparedPages
            | Change::InputInMemory => [true, true],
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Change::HalfProcessors => "half the processors",
            Change::BesideComputing => "beside processes that compute",
            Change::BesideReading => "beside processes that read memory",
            Change::HugePages => "huge pages for the allocator",
            Change::SmallPages => "no huge pages",
            Change::OtherAllocator => "another allocator",
            Change::Threads => "threads instead of processes",
            Change::PreparedPages => "pages touched beforehand",
            Change::InputInMemory => "the input in memory",
        })
    }
}
