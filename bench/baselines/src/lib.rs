//! What the hand-written programs share: arguments and output, never the work.

pub mod words;
