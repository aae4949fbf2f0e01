//! Gristmill ring.
