//! What a person sees: messages, errors, progress, and standard output.

pub mod messages;
pub mod failure;
pub mod standard_output;
pub mod progress;
