//! For tests of the engine: moments at which a worker ends itself.
//!
//! Workers pass these moments wherever others depend on what they have done. Nothing here does anything in a job that names none.

pub(crate) mod kill_points;
