//! Gristmill os.
