//! Programs of users: started apart, stopped and continued as a whole.

mod freezer;
mod memory;
mod start;

pub use freezer::{Clock, Freezer, Group, left_behind};
pub use memory::MemoryLimits;
pub use start::{Start, Used, now_ended, raise_file_limit, reap, start};
