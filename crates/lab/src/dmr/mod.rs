//! DMR (Yu and Zhang 2017; docs/bibliography.md): processes that hand pages over, against threads that share an array.
//!
//! ```text
//!  model        a small MapReduce, to vary what the engine has no choice for
//!  comparisons  what `experiment` compares of DMR
//!  curves       curves over numbers of workers
//!  judge        when a verdict is given
//!  runs         runs of the model, in turn
//!  engine       runs of the engine, beside them
//!  experiments  the results that several figures share
//!  figures      the figures and tables
//!  paper        all of them in order, with what the paper found
//!  command      `gristmill-lab dmr`
//! ```

pub mod model;
pub mod comparisons;
mod curves;
mod judge;
mod runs;
mod engine;
pub mod experiments;
mod figures;
pub mod paper;
pub mod command;
