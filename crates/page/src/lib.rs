//! Gristmill page.
