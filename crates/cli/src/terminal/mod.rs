//! The terminal: messages, errors, progress, and standard output.

pub mod messages;
pub mod settings;
pub mod nearest;
pub mod failure;
pub mod standard_output;
pub mod command_line;
pub mod progress;
