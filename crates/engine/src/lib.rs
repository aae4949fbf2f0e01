//! Gristmill engine.
