//! Gristmill apps.
