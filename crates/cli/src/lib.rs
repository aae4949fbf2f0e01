//! Gristmill cli.
