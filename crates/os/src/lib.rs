//! What Gristmill asks of the kernel.
//!
//! This is one of the two crates that may use `unsafe`; its unsafe blocks rest on promises that the
//! kernel makes, or the processor. The rooms:
//!
//! - [`Region`]: the one piece of memory that all workers share, at one address in all of them;
//! - [`PrivateView`]: memory that a worker changes for itself alone, and which OS pages of it it has changed;
//! - [`process`]: start a worker by fork, watch it, learn why it died;
//! - [`ended`]: proof that a worker runs no more;
//! - [`futex`]: sleep and wake between processes, for the doorbells of `gristmill-ring`;
//! - [`wake`]: an eventfd, and a poll over many file descriptors;
//! - [`file_size`]: the limit of a file's size, as an error;
//! - [`folder`]: folders that stay the ones that were opened, and files that nobody else has put there;
//! - [`machine`]: processors, NUMA nodes, caches, memory that is left;
//! - [`memory`]: huge pages for what belongs to one process alone;
//! - [`standard`]: which of the three standard streams were open at the start;
//! - [`perf`]: counters of the kernel and of the processor;
//! - [`usage`]: time, faults and context switches of a thread or a process;
//! - [`allocations`]: what a thread has asked the allocator for;
//! - [`clock`]: one time for all processes;
//! - [`vectors`]: loops compiled for the widest vectors of the processor.
//!
//! Linux only.

#![allow(unsafe_code)]

pub mod allocations;
mod cgroup;
pub mod clock;
pub mod ended;
pub mod file_size;
pub mod folder;
pub mod futex;
pub mod machine;
pub mod memory;
mod pagemap;
pub mod perf;
mod private;
pub mod process;
mod region;
pub mod standard;
pub mod usage;
pub mod vectors;
pub mod wake;

pub use private::{Original, PrivateView};
pub use region::Region;
