//! System calls, behind safe functions where that is possible.
//!
//! This is one of the two crates that may use `unsafe`; its unsafe blocks rest on promises that the
//! kernel makes, or the processor. The rooms:
//!
//! - [`Region`]: the one piece of memory that all workers share, at one address in all of them;
//! - [`Window`]: a view of one piece of shared memory at a time, moved by mapping;
//! - [`PrivateView`]: copy-on-write memory of one worker, and the OS pages that it has changed;
//! - [`signals`]: what signals do, in this process and in programs that it starts;
//! - [`process`]: starting a worker by fork, watching it, and its cause of death; ending a tree of processes;
//! - [`descriptor`]: files that are known by number;
//! - [`ended`]: proof that a worker has ended;
//! - [`futex`]: sleeping and waking between processes, for the doorbells of `gristmill-ring`;
//! - [`wake`]: an eventfd, and a poll over many file descriptors;
//! - [`file_size`]: the limit of a file's size, as an error;
//! - [`folder`]: open folders and the names in them, safe from other users;
//! - [`whole_file`]: files that appear under their name whole, or not at all;
//! - [`machine`]: processors, NUMA nodes, caches, available memory;
//! - [`memory`]: private memory in huge pages;
//! - [`program`]: programs of users, started apart, stopped and continued as a whole;
//! - [`room`]: folders for temporary files, and the room that these leave free;
//! - [`standard`]: standard output, and the streams that were closed at the start;
//! - [`perf`]: counters of the kernel and of the processor;
//! - [`samples`]: instruction addresses of other processes, sampled;
//! - [`kernel_calls`]: what the kernel does for other processes, sampled;
//! - [`stop`]: requests to stop, as something to wait for;
//! - [`usage`]: time, faults and context switches of a thread or a process;
//! - [`allocations`]: counts of allocations per thread;
//! - [`clock`]: one time for all processes;
//! - [`vectors`]: loops compiled for the widest vectors of the processor.
//!
//! Linux only.

#![allow(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod allocations;
mod cgroup;
pub mod clock;
pub mod descriptor;
pub mod ended;
pub mod file_size;
pub mod folder;
pub mod futex;
pub mod machine;
pub mod memory;
mod pagemap;
pub mod perf;
mod perf_ring;
mod private;
pub mod signals;
pub mod process;
pub mod program;
mod region;
pub mod room;
pub mod samples;
pub mod kernel_calls;
pub mod standard;
pub mod whole_file;
pub mod stop;
pub mod usage;
pub mod vectors;
pub mod wake;
mod window;

pub use private::{Original, PrivateView};
pub use region::Region;
pub use window::{Pieces, Window};
