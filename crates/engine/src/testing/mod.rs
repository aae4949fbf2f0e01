//! Kill points for tests of the engine: moments at which a worker ends itself.
//!
//! Workers pass these moments wherever other processes depend on their work. Nothing here has an effect unless a job
//! names a kill point.

pub(crate) mod kill_points;
