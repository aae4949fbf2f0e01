//! All runs: those whose times count, those whose threads are sampled, and experiments.
//!
//! ```text
//!  what         the words of each run
//!  table        the times of all combinations of parameters
//!  phase_table  the phases as a part of the report
//!  palindromes  what thread bottlenecks (Chen 2020) measures beyond that
//!  experiments  runs under changed circumstances, which rule out causes
//!  evidence     the account of the workers' time, with one more run each, whose threads are sampled
//!  plan         all of these runs, as the request asks for them
//! ```

pub mod what;
pub mod table;
pub mod phase_table;
pub mod palindromes;
pub mod experiments;
pub mod evidence;
pub mod plan;
