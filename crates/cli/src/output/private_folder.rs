//! Temporary folders that only their owner may enter.

pub use gristmill_os::room::private_folder;
